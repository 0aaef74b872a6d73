"""Pictures for papers, drawn with matplotlib: vectors, readable in grey, the same bytes each time."""
