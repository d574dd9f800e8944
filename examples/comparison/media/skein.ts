/** Plays melodies: asks how they should sound, and reports each note. Over stdio. */
import { AsyncServer, Content, VisibleError } from "skein"
import { z } from "zod"
import { tone, wav } from "./tones.ts"

const Sound = z.object({ instrument: z.enum(["sine", "square"]), tempo: z.int().min(40).max(240).default(120) })
const Notes = z.array(z.string().regex(/^[A-G]#?[1-7]$/)).min(1).max(64)

new AsyncServer({ name: "media", version: "1.0.0" })
  .tool(
    "play_melody",
    { description: "Plays notes such as C4, F#4, A4.", input: z.object({ notes: Notes }) },
    async ({ notes }, { elicit, progress }) => {
      const answer = await elicit("How should it sound?", Sound)
      if (answer.action !== "accept") throw new VisibleError("The user did not say how it should sound")
      const { instrument, tempo } = answer.content
      const parts: Array<Int16Array> = []
      for (const [index, note] of notes.entries()) {
        await progress({ progress: index + 1, total: notes.length, message: note })
        parts.push(tone(note, instrument, 60 / tempo))
      }
      return [Content.text(`${notes.length} notes at ${tempo} beats a minute`), Content.audio(wav(parts), "audio/wav")]
    }
  )
  .runStdio()
