"""Synthesizes notes, for the Python server of this folder."""

import io
import math
import struct
import wave

RATE = 16_000
SEMITONES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]


def tone(note: str, instrument: str, seconds: float) -> bytes:
    """Makes the samples of a note such as A4, with a short fade at both ends."""
    semitone = SEMITONES.index(note[:-1]) + 12 * (int(note[-1]) + 1)
    frequency = 440 * 2 ** ((semitone - 69) / 12)
    count = round(seconds * RATE)
    samples = []
    for index in range(count):
        value = math.sin(2 * math.pi * frequency * index / RATE)
        shape = value if instrument == "sine" else math.copysign(0.5, value)
        samples.append(int(9_000 * min(1, index / 400, (count - index) / 400) * shape))
    return struct.pack(f"<{count}h", *samples)


def wav(parts: list[bytes]) -> bytes:
    """Makes a WAV file of samples."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(b"".join(parts))
    return out.getvalue()
