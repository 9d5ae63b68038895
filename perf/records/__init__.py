"""Records: the raw samples of campaigns, one file per campaign run."""
