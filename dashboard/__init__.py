"""Where people read and decide: command line, pages, settings (import it as ``crashpath.dashboard``)."""
