"""The version, in its one home: the build reads it here."""

VERSION = "0.1.0"
