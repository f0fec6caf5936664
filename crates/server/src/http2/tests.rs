//! One connection from its first byte on, cut anywhere, with an own client and with a model.
