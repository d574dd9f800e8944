import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as TaskSchedule from "@skein/tasks/TaskSchedule"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskSchedules from "@skein/tasks/TaskSchedules"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const written: Array<string> = []
const write = (day: string) => Effect.sync(() => void written.push(day))

// #region report
const report = Task.make("report", { input: { shop: Schema.String, at: Schema.String } })

const reporting = Task.layer(
  report,
  ({ at, shop }) => Effect.as(Step.run("write", {}, () => write(`${shop} ${at}`)), `The report of ${shop}`)
)

const nightly = TaskSchedule.layer("nightly report", report, {
  cron: "30 2 * * *",
  timeZone: "Europe/Berlin",
  args: { shop: "north" },
  timeArgument: "at",
  overlap: "skip"
})

export const Office = McpServer.layer({ name: "office", version: "1.0.0" }, reporting, nightly, Tasks.layer())
// #endregion

/** Each shop chooses when it gets its report. */
export const subscribe = (shop: string, cron: string, timeZone: string) =>
  Effect.flatMap(TaskSchedules.TaskSchedules, (schedules) =>
    schedules.set(`report of ${shop}`, {
      cron,
      timeZone,
      missed: "skip",
      timeArgument: "at",
      task: { tool: "report", args: { shop }, owner: `shop ${shop}` }
    }))

export const unsubscribe = (shop: string) =>
  Effect.flatMap(TaskSchedules.TaskSchedules, (schedules) => schedules.remove(`report of ${shop}`))

const arrived = new Set<string>(["0817"])
const isThere = (parcel: string) => Effect.sync(() => arrived.has(parcel))
const pauseMinutes = 20

const track = Task.layer(
  Task.make("track", { input: { parcel: Schema.String, day: Schema.Int }, ttl: "300 days" }),
  ({ day, parcel }) =>
    Effect.gen(function*() {
      for (let look = 1; look <= 24; look++) {
        const there = yield* Step.run(`look ${look}`, { success: Schema.Boolean }, () => isThere(parcel))
        if (there) return `Arrived on day ${day}`
        yield* Step.sleep(`pause ${look}`, `${pauseMinutes} minutes`)
      }
      // The next day starts with an empty log.
      return yield* Task.continueWith({ parcel, day: day + 1 })
    })
)

export const Tracking = McpServer.layer(
  { name: "tracking", version: "1.0.0" },
  track,
  Tasks.layer({ maxTtl: "365 days" })
)

export const arrives = (parcel: string) => void arrived.add(parcel)
