/** Plays melodies: asks how they should sound, and reports each note. Over stdio. */
import * as Content from "@skein/server/Content"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import { Effect, Schema } from "effect"
import { tone, wav } from "./tones.ts"

const Note = Schema.String.check(Schema.isPattern(/^[A-G]#?[1-7]$/))
const Sound = {
  instrument: Elicitation.choice({ sine: "Flute", square: "Organ" }),
  tempo: Schema.Int.check(Schema.isBetween({ minimum: 40, maximum: 240 })).pipe(Elicitation.withDefault(120))
}

const play = Tool.make("play_melody", {
  description: "Plays notes such as C4, F#4, A4.",
  input: { notes: Schema.Array(Note).check(Schema.isMinLength(1), Schema.isMaxLength(64)) }
})

const melodies = Tool.layer(play, ({ notes }) =>
  Effect.gen(function*() {
    const { instrument, tempo } = yield* Elicitation.accepted(Elicitation.form("How should it sound?", Sound))
    const parts = yield* Effect.forEach(notes, (note, index) =>
      Effect.as(
        Progress.report({ progress: index + 1, total: notes.length, message: note }),
        tone(note, instrument, 60 / tempo)
      ))
    return [Content.text(`${notes.length} notes at ${tempo} beats a minute`), Content.audio(wav(parts), "audio/wav")]
  }))

Stdio.runMain(McpServer.layer({ name: "media", version: "1.0.0" }, melodies))
