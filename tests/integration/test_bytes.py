# SPDX-License-Identifier: MIT
"""Bytes arrive as they were written, whatever they are and however they were cut."""
import base64
import hashlib
import random
import unittest

from support import PYTHON, BwrapTestCase, NoneTestCase

RANDOM = random.Random(8).randbytes(65537)
ACCENTS = ("é" * 1_000_000).encode()
ODD = {
    "nothing": b"",
    "one NUL": b"\0",
    "a truncated character": b"abc\xe2\x82",
    "a lone continuation": b"\x80abc",
    "an overlong form": b"\xc0\xaf/",
    "a surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "control characters": bytes(range(1, 32)) * 10,
    "what JSON escapes": b"\"\\/\x08\x0c\n\r\t\x7f",
    "line separators": "\u2028\u2029\ufeff\ufffe".encode(),
    "four bytes each": "𝄞🜁".encode() * 1000,
}

# Writes a file to a descriptor in pieces that no character and no buffer agrees with.
WRITER = """
import itertools, os, sys
data, fd = open(sys.argv[1], "rb").read(), int(sys.argv[2])
sizes = itertools.cycle([1, 3, 7, 4093, 1, 65521, 16381, 11])
at = 0
while at < len(data):
    at += os.write(fd, data[at:at + next(sizes)])
"""


def pieces(data, sizes=(1, 3, 4093, 16381, 7, 32749)):
    at = number = 0
    while at < len(data):
        yield data[at:at + sizes[number % len(sizes)]]
        at += sizes[number % len(sizes)]
        number += 1


class BytesTests:
    def assert_same(self, got, expected):
        self.assertEqual((len(got), hashlib.sha256(got).hexdigest()),
                         (len(expected), hashlib.sha256(expected).hexdigest()))

    def test_output_in_odd_pieces_arrives_whole_on_both_streams(self):
        for name, data in {"random": RANDOM, "accents": ACCENTS}.items():
            self.write_file("data", data)
            for fd, stream in {1: "stdout", 2: "stderr"}.items():
                with self.subTest(name, stream=stream):
                    run = self.run_to_end(argv=[PYTHON, "-c", WRITER, "data", str(fd)])
                    self.assert_ended(run, {"code": 0})
                    self.assert_same(getattr(run, stream), data)
                    self.assertEqual(run.result["bytes"][stream], len(data))

    def test_both_streams_at_once_do_not_mix(self):
        self.write_file("random", RANDOM)
        self.write_file("accents", ACCENTS)
        self.write_file("writer.py", WRITER)
        run = self.run_to_end(f"{PYTHON} writer.py random 2 & {PYTHON} writer.py accents 1; wait")
        self.assert_same(run.stdout, ACCENTS)
        self.assert_same(run.stderr, RANDOM)

    def test_bytes_that_are_no_text_arrive(self):
        for name, data in ODD.items():
            with self.subTest(name):
                self.write_file("data", data)
                run = self.run_to_end(argv=[PYTHON, "-c", WRITER, "data", "1"])
                self.assertEqual(bytes(run.stdout), data)

    def test_streamed_stdin_comes_back_whole(self):
        for name, data in {"random": RANDOM, "accents": ACCENTS}.items():
            with self.subTest(name):
                run = self.spawn(argv=["cat"], stdin="stream")
                feeder = run.feed(pieces(data))
                run.wait_end()
                feeder.join()
                self.assert_ended(run, {"code": 0})
                self.assert_same(run.stdout, data)

    def test_streamed_text_comes_back_whole(self):
        text = "é€𝄞\n\"\\" * 40_000
        run = self.spawn(argv=["cat"], stdin="stream")
        run.feed(pieces(text))
        self.assert_same(run.wait_end().stdout, text.encode())

    def test_inline_stdin_is_read_and_then_ends(self):
        for name, stdin, data in (
                ("text", {"text": "é\n" * 50_000}, "é\n".encode() * 50_000),
                ("base64", {"base64": base64.b64encode(RANDOM).decode()}, RANDOM),
                ("NUL", {"base64": "AAE="}, b"\0\1"),
                ("nothing", {"text": ""}, b"")):
            with self.subTest(name):
                run = self.run_to_end(argv=["cat"], stdin=stdin)
                self.assert_ended(run, {"code": 0})
                self.assert_same(run.stdout, data)

    def test_a_line_of_almost_one_mebibyte_is_taken(self):
        text = "x" * ((1 << 20) - 4096)
        run = self.run_to_end(argv=["sha256sum"], stdin={"text": text})
        self.assertEqual(run.stdout.split()[0].decode(), hashlib.sha256(text.encode()).hexdigest())

    def test_a_character_is_not_held_back_when_its_stream_ends(self):
        run = self.run_to_end(argv=["printf", "\\303"])
        self.assertEqual(bytes(run.stdout), b"\xc3")


class BytesUnderNone(BytesTests, NoneTestCase):
    pass


class BytesUnderBwrap(BytesTests, BwrapTestCase):
    pass


if __name__ == "__main__":
    unittest.main()
