"""What the pictures show, as exact numbers: the report and the plots draw the same."""
