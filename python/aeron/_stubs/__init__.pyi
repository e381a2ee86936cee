"""The stub files of the native module, one for each concept. They exist for type checkers only."""
