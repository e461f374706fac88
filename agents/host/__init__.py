"""The host side of the stitched program as a subtask: where it goes, what is asked, what may be answered."""
