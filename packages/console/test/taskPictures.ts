/** `npm run try -- packages/console/test/taskPictures.ts <folder>`: pictures of the groups of tasks and their actions. */
import type { ConsoleSources } from "@skein/console/ConsoleSource"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import { TaskAdmin, type WorkerState } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { find } from "../../client/test/browser/chromium.ts"
import { browser, type Tab } from "../../auth/test/proxy/chromium.ts"
import { look, shoot } from "./camera.ts"
import * as kit from "./kit.ts"
import * as taskKit from "./taskKit.ts"

const worker = (id: string, host: string, seconds: number, running: number): WorkerState => ({
  id,
  host,
  pid: 4711,
  application: undefined,
  pools: id.startsWith("7") ? ["default"] : ["default", "ovens"],
  startedAt: Date.now() - 9_000_000,
  leaseEndsAt: Date.now() + seconds * 1_000,
  isLost: seconds < 0,
  running
})

const workers = [
  worker("3f9c2a71-8d1e-4b7a", "kitchen-1", 3_600, 2),
  worker("7b20e4d5-1c3f-4e9d", "kitchen-2", 3_600, 0),
  worker("c81d6f03-5a2b-4c8e", "cellar", -60, 1)
]

/** Clicks on a row by a part of its text. */
const click = (tab: Tab, text: string, button = ".row") =>
  Effect.promise(async () => {
    const row = `[...document.querySelectorAll(${JSON.stringify(`${button}:not([hidden])`)})]` +
      `.find((one) => one.textContent.includes(${JSON.stringify(text)}))`
    await tab.until(`${row} !== undefined`)
    await tab.evaluate(`${row}.click()`)
  })

const program = Effect.gen(function*() {
  const engine = yield* Layer.build(MemoryTasks.layer({ pollInterval: 50 }))
  const { runTasks } = Context.get(engine, TaskEngine)
  const real = Context.get(engine, TaskAdmin)
  const admin = Layer.succeed(TaskAdmin, { ...real, workers: Effect.succeed(workers) })
  const submit = (...args: Parameters<typeof taskKit.submit>) => Effect.provideContext(taskKit.submit(...args), engine)
  yield* runTasks(taskKit.handlers)
  for (let at = 0; at < 5; at++) {
    yield* submit("order", { owner: ["ada@example.com", "grace@example.com", null][at % 3]! })
  }
  for (const tool of ["brew", "brew", "invite", "bake"]) yield* submit(tool, { owner: "lin@example.com" })
  yield* real.pause("deliver")
  for (let at = 0; at < 12; at++) yield* submit("deliver", { pool: at % 3 === 0 ? "ovens" : "default" })
  yield* Effect.sleep(800)
  const tasks = ConsoleTasks.layer.pipe(Layer.provide(admin))
  const { console: { url } } = yield* kit.open(
    {},
    tasks as Layer.Layer<never, never, ConsoleSources>,
    { interval: 200 }
  )
  const open = yield* browser(find()!)
  const tab = yield* Effect.promise(open)
  yield* Effect.promise(() => look(tab, false, 1280, 900))
  yield* Effect.promise(() => tab.goto(url))
  yield* Effect.sleep(1_000)
  yield* shoot(tab, "tasks-1")
  yield* click(tab, "deliver")
  yield* Effect.sleep(300)
  yield* shoot(tab, "tasks-2-queue")
  yield* Effect.promise(() => look(tab, true, 1280, 900))
  yield* click(tab, "order")
  yield* click(tab, "The shop answers")
  yield* Effect.sleep(300)
  yield* shoot(tab, "tasks-3-failed-dark")
  yield* click(tab, "Run again", "button")
  yield* Effect.sleep(300)
  yield* shoot(tab, "tasks-4-confirm-dark")
  yield* Effect.promise(() => tab.evaluate("document.getElementById('yes').click()"))
  yield* Effect.sleep(1_500)
  yield* shoot(tab, "tasks-5-answer-dark")
  yield* Effect.promise(() => look(tab, false, 1280, 900))
  yield* Effect.promise(() => tab.evaluate("(filter.value = 'failed', filter.dispatchEvent(new Event('input')))"))
  // Opens the log of the newest failed task.
  yield* Effect.promise(() =>
    tab.evaluate("(grid.focus(), [...document.querySelectorAll('.row[data-kind=task] .twisty')][0].click())")
  )
  yield* click(tab, "reserve a table")
  yield* click(tab, "Run again from here", "button")
  yield* Effect.sleep(300)
  yield* shoot(tab, "tasks-6-step")
  yield* Effect.promise(() => tab.evaluate("document.querySelector('dialog button').click()"))
  yield* Effect.promise(() =>
    tab.evaluate("(filter.value = '', filter.dispatchEvent(new Event('input')), viewport.scrollTop = 0)")
  )
  yield* click(tab, "cellar")
  yield* Effect.sleep(300)
  yield* shoot(tab, "tasks-7-worker")
  yield* Effect.promise(() => look(tab, false, 420, 860))
  yield* click(tab, "deliver")
  yield* Effect.sleep(400)
  yield* shoot(tab, "tasks-8-narrow")
})

await Effect.runPromise(Effect.scoped(program))
process.exit(0)
