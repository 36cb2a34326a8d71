"""Every reading that ever came, for as long as there is room: kept in files that others can read too."""
