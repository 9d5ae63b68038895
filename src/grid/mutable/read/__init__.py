"""Reading a mutable file: finding its versions, judging claims, fetching and checking one version. Plans only."""
