"""Records: the raw samples of campaigns, one file for each."""
