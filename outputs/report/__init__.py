"""The report: one offline HTML file with the derivation, its pictures, and numbers that follow sliders."""
