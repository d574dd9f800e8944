/** Plays melodies: asks how they should sound, and reports each note. Over stdio. */
import { acceptedContent, inputRequired, inputResponse, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { z } from "zod"
import { tone, wav } from "./tones.ts"

const Note = z.string().regex(/^[A-G]#?[1-7]$/)
const Sound = z.object({
  instrument: z.enum(["sine", "square"]),
  tempo: z.int().min(40).max(240).default(120)
})
const requestedSchema = {
  type: "object" as const,
  properties: {
    instrument: {
      type: "string" as const,
      oneOf: [{ const: "sine", title: "Flute" }, { const: "square", title: "Organ" }]
    },
    tempo: { type: "integer" as const, minimum: 40, maximum: 240, default: 120 }
  },
  required: ["instrument"]
}

serveStdio(() => {
  const server = new McpServer({ name: "media", version: "1.0.0" })
  server.registerTool(
    "play_melody",
    {
      description: "Plays notes such as C4, F#4, A4.",
      inputSchema: z.object({ notes: z.array(Note).min(1).max(64) })
    },
    async ({ notes }, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "sound")
      if (answer.kind === "missing") {
        const sound = inputRequired.elicit({ message: "How should it sound?", requestedSchema })
        return inputRequired({ inputRequests: { sound } })
      }
      const sound = acceptedContent(mcpReq.inputResponses, "sound", Sound)
      if (sound === undefined) throw new Error("The user did not say how it should sound")
      const { instrument, tempo } = sound
      const progressToken = mcpReq._meta?.progressToken
      const parts: Array<Int16Array> = []
      for (const [index, note] of notes.entries()) {
        mcpReq.signal.throwIfAborted()
        parts.push(tone(note, instrument, 60 / tempo))
        if (progressToken === undefined) continue
        const params = { progressToken, progress: index + 1, total: notes.length, message: note }
        await mcpReq.notify({ method: "notifications/progress", params })
      }
      return {
        content: [
          { type: "text", text: `${notes.length} notes at ${tempo} beats a minute` },
          { type: "audio", data: wav(parts).toString("base64"), mimeType: "audio/wav" }
        ]
      }
    }
  )
  return server
})
