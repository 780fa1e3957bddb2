//! Records programs and turns recordings into traces.
