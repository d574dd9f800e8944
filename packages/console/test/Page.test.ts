/** The page in Chromium. Needs a browser: see `packages/client/test/browser`. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as ConsoleTasks from "@skein/console/ConsoleTasks"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { browser, type Tab } from "../../auth/test/proxy/chromium.ts"
import { find } from "../../client/test/browser/chromium.ts"
import { OverviewInterval } from "../src/internal/tasks/overview.ts"
import * as kit from "./kit.ts"
import * as taskKit from "./taskKit.ts"

const chromium = find()

/** Presses a key, as a person does. */
const press = async (tab: Tab, key: string, code = 0): Promise<void> => {
  const text = key.length === 1 ? { text: key } : undefined
  const event = { key, code: key, windowsVirtualKeyCode: code, ...text }
  await tab.send("Input.dispatchKeyEvent", { type: "keyDown", ...event })
  await tab.send("Input.dispatchKeyEvent", { type: "keyUp", ...event })
}

const labels = "[...document.querySelectorAll('.row:not([hidden])')]" +
  ".sort((one, other) => one.ariaRowIndex - other.ariaRowIndex).map((row) => row.querySelector('.label').textContent)"
const selected = "document.querySelector('.row[aria-selected=true] .label')?.textContent"

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  describe("in Chromium", () => {
    it.live("is a tree grid that the keyboard moves in, filters, collapses and interrupts", () =>
      Effect.scoped(Effect.gen(function*() {
        const { console: { url: at }, url } = yield* kit.open({}, undefined, { interval: 100 })
        const signal = yield* kit.signal
        const open = yield* browser(chromium)
        yield* Effect.promise(async () => {
          const ada = await kit.visit(url, signal, { name: "Teapot", user: "ada" })
          const answer = ada.call("tools/call", { name: "brew", arguments: { tea: "Assam" } })
          await kit.visit(url, signal, { name: "<img src=x onerror=alert(1)>", user: "grace" })
          const tab = await open()
          await tab.goto(at)
          await tab.until("document.querySelector('#connection').dataset.state === 'live'")
          await tab.until(`${labels}.length === 4`)
          assert.deepEqual(await tab.evaluate(labels), [
            "tea house 1.2.0",
            "Teapot 3.1",
            "tools/call brew",
            "<img src=x onerror=alert(1)> 3.1"
          ])
          assert.strictEqual(await tab.evaluate("document.images.length"), 0)
          assert.strictEqual(await tab.evaluate("document.title"), "tea house 1.2.0 · Console")
          await tab.evaluate("document.getElementById('grid').focus()")
          await tab.until(`${selected} === 'tea house 1.2.0'`)
          await press(tab, "ArrowDown", 40)
          assert.strictEqual(await tab.evaluate(selected), "Teapot 3.1")
          await press(tab, "ArrowLeft", 37)
          assert.strictEqual(await tab.evaluate(`${labels}.length`), 3)
          assert.strictEqual(
            await tab.evaluate("document.querySelector('.row[aria-selected=true]').ariaExpanded"),
            "false"
          )
          await press(tab, "ArrowRight", 39)
          await press(tab, "ArrowRight", 39)
          assert.strictEqual(await tab.evaluate(selected), "tools/call brew")
          // The attributes that a screen reader receives about the row.
          const row = await tab.evaluate(`(() => {
            const row = document.getElementById(document.getElementById("grid").getAttribute("aria-activedescendant"))
            return [row.role, row.ariaLevel, row.ariaPosInSet, row.ariaSetSize, row.ariaRowIndex, row.parentElement.role]
          })()`)
          assert.deepEqual(row, ["row", "3", "1", "1", "4", "rowgroup"])
          await press(tab, "Enter", 13)
          const details = await tab.evaluate("document.getElementById('details').innerText") as string
          expect(details).toMatch(/tools\/call brew/)
          expect(details).toMatch(/3 of 8 \(38%\) · the leaves unfold/)
          expect(details).toMatch(/Arguments and results are hidden/)
          assert.notInclude(details, "Assam")
          // Without a confirmation nothing happens.
          await press(tab, "x", 88)
          await tab.until("document.getElementById('confirm').open")
          assert.strictEqual(await tab.evaluate("document.activeElement.textContent"), "Leave it")
          await press(tab, "Escape", 27)
          await tab.until("!document.getElementById('confirm').open")
          assert.strictEqual(await tab.evaluate(selected), "tools/call brew")
          await press(tab, "x", 88)
          await tab.until("document.getElementById('confirm').open")
          await tab.evaluate("document.getElementById('yes').click()")
          assert.include(await (await answer).text(), "interrupted by the operator")
          await tab.until(`${labels}.length === 3`)
          await tab.until("document.getElementById('announcement').textContent === 'tools/call brew: interrupted'")
          await tab.until("document.getElementById('details').innerText.includes('It has ended')")
          await press(tab, "/", 191)
          assert.strictEqual(await tab.evaluate("document.activeElement.id"), "filter")
          for (const letter of "grace") await press(tab, letter)
          await tab.until(`${labels}.length === 2`)
          await tab.until("document.getElementById('counts').textContent.includes('1 row shown')")
          await tab.evaluate("(filter.value = 'nobody', filter.dispatchEvent(new Event('input')))")
          await tab.until("document.getElementById('empty').innerText === 'No row matches the filter.'")
        })
      })))

    it.live("shows the log of a task on request, and its later events", () =>
      Effect.scoped(Effect.gen(function*() {
        const engine = yield* Layer.build(MemoryTasks.layer({ pollInterval: "50 millis" }))
        const { answer, get, runTasks, submit } = Context.get(engine, TaskEngine)
        yield* runTasks(() => ({
          durable: true,
          run: (call) =>
            Effect.gen(function*() {
              yield* Step.run("write letters", {}, () => Effect.void)
              yield* Step.run("stamp them", {}, () => Effect.void)
              yield* Effect.orDie(call.request("elicitation/create", { message: "Guests?" }))
              yield* Step.run("post them", {}, () => Effect.void)
              return yield* Effect.never
            }).pipe(Effect.provideService(CurrentTask, call.task))
        }))
        const { id } = yield* submit({
          tool: "invite",
          args: {},
          pool: "default",
          owner: null,
          caller: { revision: "2025-11-25", capabilities: {}, info: undefined, principal: undefined },
          ttlMs: null,
          pollIntervalMs: 1000,
          limits: { all: {}, client: {}, tool: {} }
        })
        const asked = yield* Effect.repeat(Effect.delay(get(id), 20), {
          until: (state) => state?.status === "input_required"
        })
        const tasks = ConsoleTasks.layer.pipe(Layer.provide(Layer.succeedContext(engine)))
        const { console: { url } } = yield* kit.open({}, tasks, { interval: 100 })
        const open = yield* browser(chromium)
        const tab = yield* Effect.promise(open)
        const more =
          "[...document.querySelectorAll('.row:not([hidden])')].find((row) => / more: /.test(row.textContent))"
        const find = (label: string) => `${labels}.includes(${JSON.stringify(label)})`
        yield* Effect.promise(async () => {
          await tab.goto(url)
          await tab.until(`${more} !== undefined`)
          assert.strictEqual(await tab.evaluate(find("write letters")), false)
          await tab.evaluate(`${more}.click()`)
          await tab.until(`${find("write letters")} && ${find("stamp them")} && ${find("elicitation/create")}`)
          assert.strictEqual(await tab.evaluate(`${more} === undefined`), true)
        })
        yield* answer(id, asked!.questions[0]!.key, {})
        yield* Effect.promise(async () => {
          await tab.until(`${more} !== undefined`)
          await tab.evaluate(`${more}.click()`)
          await tab.until(find("post them"))
        })
      })))

    it.live("pauses a tool and runs a failed task again, by the keyboard and after a confirmation", () =>
      Effect.scoped(Effect.gen(function*() {
        const engine = yield* Layer.build(MemoryTasks.layer({ pollInterval: 50 }))
        const admin = Context.get(engine, TaskAdmin)
        const { runTasks } = Context.get(engine, TaskEngine)
        yield* runTasks(taskKit.handlers)
        const { id } = yield* Effect.provideContext(taskKit.submit("order"), engine)
        yield* Effect.provideContext(taskKit.submit("brew"), engine)
        yield* Effect.repeat(Effect.delay(admin.list({ status: ["failed"] }), 20), {
          until: (tasks) => tasks.length === 1
        })
        const tasks = ConsoleTasks.layer.pipe(
          Layer.provide(Layer.succeedContext(engine)),
          Layer.provide(Layer.succeed(OverviewInterval, 200))
        )
        const { console: { url } } = yield* kit.open({}, tasks, { interval: 100 })
        const open = yield* browser(chromium)
        const tab = yield* Effect.promise(open)
        const answer = "document.querySelector('#details .answer')?.textContent"
        const focused = "document.activeElement.textContent"
        const state = "document.querySelector('.row[aria-selected=true] .state').textContent"
        const agree = async (yes: string): Promise<void> => {
          await tab.until("document.getElementById('confirm').open")
          assert.strictEqual(await tab.evaluate(focused), "Leave it")
          await press(tab, "Tab", 9)
          assert.strictEqual(await tab.evaluate(focused), yes)
          await press(tab, " ", 32)
          await tab.until("!document.getElementById('confirm').open")
        }
        const select = async (label: string): Promise<void> => {
          await tab.evaluate("grid.focus()")
          await press(tab, "Home", 36)
          for (let at = 0; await tab.evaluate(selected) !== label; at++) {
            assert.isBelow(at, 30, label)
            await press(tab, "ArrowDown", 40)
          }
        }
        yield* Effect.promise(async () => {
          await tab.goto(url)
          await tab.until(`${labels}.includes("Tasks that ended with an error")`)
          await select("brew")
          // Without a confirmation nothing happens, and the focus returns to the button.
          await press(tab, "a", 65)
          assert.strictEqual(await tab.evaluate(focused), "Pause…")
          await press(tab, " ", 32)
          await tab.until("document.getElementById('confirm').open")
          await press(tab, "Escape", 27)
          await tab.until(`!document.getElementById('confirm').open && ${focused} === "Pause…"`)
          await press(tab, " ", 32)
          await agree("Pause")
          await tab.until(`${answer} === "brew is paused" && ${state} === "paused"`)
          await tab.until(`${focused} === "Resume"`)
        })
        expect(yield* admin.tools).toMatchObject([{ tool: "brew", pausedAt: expect.any(Number) }])
        const label = `order ${id.slice(0, 8)}…`
        yield* Effect.promise(async () => {
          await press(tab, " ", 32)
          await tab.until(`${answer} === "brew runs again" && ${state} === "waiting"`)
          await select(label)
          await tab.until(`${answer} === undefined`)
          await press(tab, "a", 65)
          assert.strictEqual(await tab.evaluate(focused), "Run again…")
          assert.include(
            await tab.evaluate("document.getElementById('details').innerText") as string,
            "The shop answers 503"
          )
          await press(tab, " ", 32)
          await agree("Run again")
          await tab.until(`${answer}?.startsWith("The new task is ")`)
        })
        const failed = yield* Effect.repeat(Effect.delay(admin.list({ status: ["failed"] }), 20), {
          until: (tasks) => tasks.length === 2
        })
        const again = failed.find(({ state }) => state.id !== id)!.state.id
        yield* Effect.promise(async () => {
          assert.strictEqual(await tab.evaluate(answer), `The new task is ${again}`)
          await tab.until(`${labels}.filter((label) => label.startsWith("order ")).length === 2`)
          // The log of a failed task opens with the row, and a step of it can be the first that runs again.
          await select(label)
          assert.strictEqual(await tab.evaluate(`${labels}.includes("reserve a table")`), false)
          await press(tab, "ArrowRight", 39)
          await tab.until(`${labels}.includes("reserve a table")`)
          await select("reserve a table")
          await press(tab, "a", 65)
          assert.strictEqual(await tab.evaluate(focused), "Run again from here…")
          await press(tab, " ", 32)
          await agree("Run again from here")
          await tab.until(`${answer}?.startsWith("The new task is ")`)
          // A row without actions does nothing.
          await select("tea house 1.2.0")
          await press(tab, "a", 65)
          await tab.until("document.getElementById('announcement').textContent === 'This row has no actions'")
        })
        yield* Effect.repeat(Effect.delay(admin.list({ status: ["failed"] }), 20), {
          until: (tasks) => tasks.length === 3
        })
      })))

    it.live("reports a lost connection, and goes on after a restart of the server", () =>
      Effect.gen(function*() {
        const port = yield* Effect.scoped(Effect.map(kit.open(), ({ console }) => console.port))
        yield* Effect.scoped(Effect.gen(function*() {
          const open = yield* browser(chromium)
          const tab = yield* Effect.promise(open)
          yield* Effect.scoped(Effect.gen(function*() {
            const { console: { url } } = yield* kit.open({ port }, undefined, { interval: 100 })
            yield* Effect.promise(() => tab.goto(url))
            yield* Effect.promise(() => tab.until("document.querySelector('#connection').textContent === 'Live'"))
            assert.strictEqual(
              yield* Effect.promise(() => tab.evaluate("document.getElementById('banner').hidden")),
              true
            )
          }))
          yield* Effect.promise(() =>
            tab.until("document.querySelector('#connection').textContent === 'Reconnecting…'")
          )
          yield* Effect.promise(() =>
            tab.until("/Connection lost .*not reachable/.test(document.getElementById('banner').innerText)")
          )
          yield* kit.open({ port }, undefined, { interval: 100 })
          yield* Effect.promise(() => tab.until("document.querySelector('#connection').textContent === 'Live'"))
          yield* Effect.promise(() => tab.until("document.getElementById('banner').hidden"))
        }))
      }))

    it.live("has elements for the rows in sight only, with 10,000 sessions", () =>
      Effect.scoped(Effect.gen(function*() {
        const { console: { url }, server } = yield* kit.open()
        yield* kit.crowd(server, 10_000)
        const open = yield* browser(chromium)
        yield* Effect.promise(async () => {
          const tab = await open()
          await tab.goto(url)
          await tab.until("document.getElementById('counts').textContent.includes('10,000 sessions')")
          const count = "document.querySelectorAll('.row').length"
          assert.isBelow(await tab.evaluate(count) as number, 80)
          assert.strictEqual(await tab.evaluate("document.getElementById('grid').ariaRowCount"), "11002")
          await tab.evaluate("document.getElementById('grid').focus()")
          await press(tab, "End", 35)
          await tab.until(`${labels}.at(-1) === 'Guest 9999 1'`)
          await tab.until(`${selected} === 'Guest 9999 1'`)
          assert.isBelow(await tab.evaluate(count) as number, 80)
          await tab.evaluate("document.getElementById('busyOnly').click()")
          await tab.until("document.getElementById('grid').ariaRowCount === '2002'")
          await tab.evaluate("(filter.value = 'guest 77', filter.dispatchEvent(new Event('input')))")
          await tab.until(`${labels}.includes('Guest 7700 1')`)
        })
      })))

    it.live("shows further rows of a source on request", () =>
      Effect.scoped(Effect.gen(function*() {
        const node = (at: number): ConsoleSource.Node => ({
          id: `${at}`,
          parent: "all",
          kind: "task",
          label: `job ${at}`,
          state: "running",
          since: 1e12 - at
        })
        const jobs = ConsoleSource.layer({
          name: "jobs",
          read: () =>
            Effect.succeed({
              nodes: [
                { id: "all", kind: "group", label: "Jobs", state: "running", more: { total: 5, after: "2" } },
                node(0),
                node(1)
              ]
            }),
          more: ({ after }) =>
            Effect.succeed(after === "2" ? { nodes: [node(2), node(3)], after: "4" } : { nodes: [node(4)] })
        })
        const { console: { url } } = yield* kit.open({}, jobs)
        const open = yield* browser(chromium)
        yield* Effect.promise(async () => {
          const tab = await open()
          await tab.goto(url)
          const more = "document.querySelector('.row[data-kind=more] .label')"
          await tab.until(`${more}?.textContent.startsWith('3 more')`)
          await tab.evaluate(`${more}.click()`)
          await tab.until(`${more}?.textContent.startsWith('1 more')`)
          await tab.evaluate(`${more}.click()`)
          await tab.until(`!document.querySelector('.row[data-kind=more]:not([hidden])')`)
          assert.deepEqual(
            (await tab.evaluate(labels) as ReadonlyArray<string>).slice(-5),
            [0, 1, 2, 3, 4].map((at) => `job ${at}`)
          )
        })
      })))
  })
}
