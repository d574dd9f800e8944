/** Synthesizes notes, for both servers of this folder. */

const sampleRate = 16_000

/** The names of the semitones of an octave. */
const semitones = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]

/** Makes the samples of a note such as `A4`, with a short fade at both ends. */
export const tone = (note: string, instrument: "sine" | "square", seconds: number): Int16Array => {
  const semitone = semitones.indexOf(note.slice(0, -1)) + 12 * (Number(note.slice(-1)) + 1)
  const frequency = 440 * 2 ** ((semitone - 69) / 12)
  const count = Math.round(seconds * sampleRate)
  return Int16Array.from({ length: count }, (_, index) => {
    const wave = Math.sin(2 * Math.PI * frequency * index / sampleRate)
    const fade = Math.min(1, index / 400, (count - index) / 400)
    return 9_000 * fade * (instrument === "sine" ? wave : Math.sign(wave) / 2)
  })
}

/** Makes a WAV file of samples. */
export const wav = (parts: ReadonlyArray<Int16Array>): Buffer => {
  const data = Buffer.concat(parts.map((part) => Buffer.from(part.buffer)))
  const header = Buffer.alloc(44)
  header.write("RIFF", 0)
  header.writeUInt32LE(36 + data.length, 4)
  header.write("WAVEfmt ", 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(2 * sampleRate, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write("data", 36)
  header.writeUInt32LE(data.length, 40)
  return Buffer.concat([header, data])
}
