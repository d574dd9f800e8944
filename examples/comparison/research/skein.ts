/** Researches a topic in steps: searches, asks which sources to read, reads them, and writes a report. Over stdio. */
import { AsyncServer, VisibleError } from "skein"
import { sqliteTasks, task, tasks } from "skein/tasks"
import { z } from "zod"
import { read, search } from "./library.ts"

// A step that has ended does not run again, although the handler starts again after a question or a restart.
const research = task(
  "research",
  {
    description: "Researches a topic and returns a report. Asks which sources to read.",
    input: z.object({ topic: z.string().min(2) }),
    ttl: "1 day"
  },
  async ({ topic }, { elicit, progress, step }) => {
    const found = await step("search", ({ signal }) => search(topic, signal))
    if (found.length === 0) throw new VisibleError(`No source knows "${topic}": try another topic`)
    const source = z.union(found.map(({ id, title }) => z.literal(id).meta({ title })))
    const answer = await elicit("Which sources shall I read?", z.object({ ids: z.array(source).min(1) }))
    if (answer.action !== "accept") throw new VisibleError("The user chose no source")
    const chosen = found.filter(({ id }) => answer.content.ids.includes(id))
    let done = 0
    const texts = await Promise.all(chosen.map(async ({ id, title }) => {
      const retry = { times: 3, initialDelay: "50 millis" } as const
      const text = await step(`read ${id}`, ({ signal }) => read(id, signal), { retry })
      await progress({ progress: ++done, total: chosen.length, message: title })
      return `## ${title}\n\n${text}`
    }))
    return `# ${topic}\n\n${texts.join("\n\n")}`
  }
)

const store = sqliteTasks({ filename: process.env["DATABASE"] ?? "research.db" })
new AsyncServer({ name: "research", version: "1.0.0" }).use(tasks(store, [research])).runStdio()
