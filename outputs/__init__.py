"""What a person or a program reads: the command line, text, LaTeX and JSON."""
