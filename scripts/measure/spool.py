"""The frame of a spool (`*.bubcap`), as far as measuring needs it: what was enabled, what was lost, how much was written."""

import json, struct

HEADER, NOTE, DROPS, END, BUFFER, ANCHOR, STATUS = 1, 8, 7, 9, 4, 6, 10
PREAMBLE, HEAD = 12, 16


class Walker:
    """Follows a spool, also one that is still written, chunk by chunk; payloads are read only where they are small."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.at = PREAMBLE
        self.header, self.left_out, self.drops, self.ended = {}, [], None, False
        self.buffers = self.buffer_bytes = self.pool_bytes = self.heap_bytes = 0

    def walk(self):
        """Takes in every whole chunk that is there; says how far that is."""
        self.file.seek(0, 2)
        size = self.file.tell()
        while self.at + HEAD <= size:
            self.file.seek(self.at)
            tag, encoding, _, stored, plain, _ = struct.unpack("<BBHIII", self.file.read(HEAD))
            if self.at + HEAD + stored > size:
                break
            if tag == BUFFER:
                self.buffers += 1
                self.buffer_bytes += plain
            elif encoding == 0 and tag in (HEADER, NOTE, DROPS, END, STATUS):
                self.take(tag, self.file.read(stored))
            self.at += HEAD + stored
        return self.at

    def take(self, tag, payload):
        if tag == HEADER:
            self.header = json.loads(payload)
        elif tag == DROPS:
            names = ("records", "discarded_buffers", "discarded_bytes", "unwritten_buffers")
            self.drops = dict(zip(names, struct.unpack_from("<4Q", payload)))
        elif tag == END:
            self.ended = True
        elif tag == STATUS and len(payload) >= 24:
            self.pool_bytes = struct.unpack_from("<Q", payload, 16)[0]
            self.heap_bytes = struct.unpack_from("<Q", payload, 24)[0] if len(payload) >= 32 else 0
        elif tag == NOTE:
            at = payload.find(b'{')
            try:
                note = json.loads(payload[at:]) if at >= 0 else {}
            except ValueError:
                note = {}
            if isinstance(note, dict):
                self.left_out = note.get("left_out", self.left_out)


def of(path):
    walker = Walker(path)
    walker.walk()
    return walker
