"""What people touch: the command line. Everything here only calls the library and shows what may be shown."""
