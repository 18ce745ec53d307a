"""The commands of `discreet`, one file each."""
