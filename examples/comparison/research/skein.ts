/** Researches a topic in steps: searches, asks which sources to read, reads them, and writes a report. Over stdio. */
import * as Elicitation from "@skein/server/Elicitation"
import * as HandlerError from "@skein/server/HandlerError"
import * as McpServer from "@skein/server/McpServer"
import * as Stdio from "@skein/server/Stdio"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import { Layer, Schema } from "effect"
import { z } from "zod"
import { read, search } from "./library.ts"

const research = Task.make("research", {
  description: "Researches a topic and returns a report. Asks which sources to read.",
  input: z.object({ topic: z.string().min(2) }),
  ttl: "1 day"
})

// A step that has ended does not run again, although the handler starts again after a question or a restart.
const researching = Task.async(research, async ({ topic }, { elicit, progress, step }) => {
  const found = await step("search", ({ signal }) => search(topic, signal))
  if (found.length === 0) throw new HandlerError.VisibleError(`No source knows "${topic}": try another topic`)
  const titles = Object.fromEntries(found.map(({ id, title }) => [id, title]))
  const Choice = { ids: Elicitation.choices(titles).check(Schema.isMinLength(1)) }
  const answer = await elicit("Which sources shall I read?", Choice)
  if (answer.action !== "accept") throw new HandlerError.VisibleError("The user chose no source")
  const { ids } = answer.content
  let done = 0
  const texts = await Promise.all(ids.map(async (id) => {
    const text = await step(`read ${id}`, ({ signal }) => read(id, signal), {
      retry: { times: 3, initialDelay: "50 millis" }
    })
    await progress({ progress: ++done, total: ids.length, message: titles[id]! })
    return `## ${titles[id]}\n\n${text}`
  }))
  return `# ${topic}\n\n${texts.join("\n\n")}`
})

const engine = SqliteTasks.layer({ filename: process.env["DATABASE"] ?? "research.db" })
Stdio.runMain(
  McpServer.layer({ name: "research", version: "1.0.0" }, researching, Tasks.layer()).pipe(Layer.provide(engine))
)
