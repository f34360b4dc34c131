"""One module for each group of pages: parse what is asked, call the service, render."""
