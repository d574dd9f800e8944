/** `skein top`: the tree, the screen and its keys, and a console over real HTTP. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Console from "@skein/console/Console"
import * as ConsoleSource from "@skein/console/ConsoleSource"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as kit from "../../console/test/kit.ts"
import { Process, type Screen } from "../src/internal/base/process.ts"
import { skeinArguments, skeinCommand } from "../src/internal/commands/skeinCommand.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import { fit, formatAge, wrap } from "../src/internal/base/columns.ts"
import { lineOf, makeTree, readChanges, readRow } from "../src/internal/top/topRows.ts"
import { TopScreen } from "../src/internal/top/topScreen.ts"

const session = (id: string, more: object = {}) => ({
  id: `server:${id}`,
  parent: "server:server",
  kind: "session",
  label: id,
  state: "idle",
  canInterrupt: true,
  ...more
})

const server = { id: "server:server", kind: "server", label: "tea 1.0", state: "running" }

const filled = (...rows: ReadonlyArray<object>): Tree => {
  const all = makeTree()
  all.receive(readChanges({ at: 1, reset: true, set: [server, ...rows] }))
  return all
}

type Tree = ReturnType<typeof makeTree>

const visible = (rows: Tree, filter = "", busyOnly = false) => rows.visible({ filter, busyOnly })

const labels = (...args: Parameters<typeof visible>) => visible(...args).map(({ row }) => row.label)

describe("rows", () => {
  it("applies changes when they are complete, and keeps a changed row at its place", () => {
    const rows = filled(session("a"), session("b"))
    assert.isFalse(rows.receive(readChanges({ at: 2, set: [session("c")], continues: true })))
    assert.deepEqual(labels(rows), ["tea 1.0", "a", "b"])
    assert.isTrue(rows.receive(readChanges({ at: 2, set: [session("a", { label: "A" })], remove: ["server:b"] })))
    assert.deepEqual(labels(rows), ["tea 1.0", "A", "c"])
    assert.isTrue(rows.receive(readChanges({ at: 3, reset: true, set: [server] })))
    assert.deepEqual(labels(rows), ["tea 1.0"])
  })

  it("ignores what is not a row, and escapes the texts of a row", () => {
    for (const value of [null, 1, "x", [], {}, { id: 1 }]) assert.isUndefined(readRow(value))
    const row = readRow({
      id: "x",
      label: "\u001b]0;evil\u0007",
      waitsFor: "a\nb",
      progress: { progress: 1, total: 4, message: "\u001b[2J" },
      principal: { not: "text" },
      details: { "\u001b": "\u009b1m" }
    })!
    expect(row).toMatchObject({
      label: "\\u{1b}]0;evil\\u{7}",
      waitsFor: "a\\u{a}b",
      progress: "25% \\u{1b}[2J",
      principal: "",
      details: [["\\u{1b}", "\\u{9b}1m"]]
    })
  })

  it("filters with ancestors and children, and hides idle sessions", () => {
    const rows = filled(
      session("a", { principal: "ada" }),
      session("b"),
      { id: "r", parent: "server:a", kind: "request", label: "brew", state: "running" }
    )
    assert.deepEqual(labels(rows, "ADA"), ["tea 1.0", "a", "brew"])
    assert.deepEqual(labels(rows, "brew running"), ["tea 1.0", "a", "brew"])
    assert.deepEqual(labels(rows, "", true), ["tea 1.0"])
    rows.setExpanded("server:a", false)
    assert.deepEqual(labels(rows), ["tea 1.0", "a", "b"])
  })

  it("reads the actions of a row, of which a digit can choose one", () => {
    const actions = [
      { name: "pause", label: "Pa\u001bse", confirm: "Its tasks\u0007 wait" },
      { name: "now", label: "Now" },
      { label: "nameless" },
      null,
      ...Array.from({ length: 20 }, (_, at) => ({ name: `${at}`, label: "x" }))
    ]
    const row = readRow({ id: "x", summary: "3 ready", actions })!
    assert.strictEqual(row.actions.length, 8)
    expect(row.actions.slice(0, 2)).toEqual([
      { name: "pause", label: "Pa\\u{1b}se", confirm: "Its tasks\\u{7} wait" },
      { name: "now", label: "Now", confirm: "" }
    ])
    for (const value of [undefined, "x", {}]) expect(readRow({ id: "x", actions: value })!.actions).toEqual([])
    const rows = filled(session("a", { summary: "3 ready" }))
    assert.include(lineOf(visible(rows)[1]!, 100, 0), "3 ready")
    assert.deepEqual(labels(rows, "3 ready"), ["tea 1.0", "a"])
  })

  it("does not count rows that have failed", () => {
    const task = { kind: "task", label: "t", state: "failed" }
    const rows = filled({ id: "1", ...task }, { id: "2", ...task, state: "running" })
    assert.strictEqual(rows.counts().get("task"), 1)
  })

  it("breaks texts into lines of the width of the terminal", () => {
    expect(wrap("a cup of tea", 6)).toEqual(["a cup", "of tea"])
    expect(wrap("a cup of tea", 100)).toEqual(["a cup of tea"])
    expect(wrap("teapotteapot cup", 6)).toEqual(["teapotteapot", "cup"])
    expect(wrap("", 6)).toEqual([""])
  })

  it("cuts and fills texts by columns", () => {
    assert.deepEqual([fit("tea", 5), fit("tea", 3), fit("teapot", 4)], ["tea  ", "tea", "tea…"])
    assert.deepEqual([fit("茶茶茶", 6), fit("茶茶茶", 5), fit("茶茶茶", 4)], ["茶茶茶", "茶茶…", "茶… "])
    assert.deepEqual([fit("e\u0301te", 3), fit("x", 0)], ["e\u0301te", ""])
    assert.deepEqual([0, 61_000, 3_700_000, 90_000_000].map(formatAge), ["0s", "1m01s", "1h01m", "1d01h"])
  })

  it("makes lines of the width of the terminal", () => {
    const [first] = visible(filled())
    for (const width of [60, 100, 140]) assert.strictEqual(Array.from(lineOf(first!, width, 0)).length, width)
  })
})

describe("the screen", () => {
  const make = () => {
    const screen = new TopScreen(false)
    screen.isConnected = true
    screen.rows.receive(readChanges({
      at: 1,
      reset: true,
      set: [server, ...Array.from({ length: 50 }, (_, at) => session(`s${at}`))]
    }))
    const line = (start: string) =>
      screen.draw(100, 20, 1).split("\r\n").find((text) => text.includes(start))?.split("\u001b[K")[0]
    return {
      screen,
      line,
      selected: () => line("\u001b[7m")?.replaceAll("\u001b[7m", "").replaceAll("\u001b[0m", "").trim().split(" ")[0]
    }
  }

  it("moves by keys, several of which may arrive at once, and scrolls", () => {
    const { line, screen, selected } = make()
    assert.strictEqual(selected(), "▾")
    screen.press("\u001b[B\u001b[B", 14)
    assert.strictEqual(selected(), "s1")
    screen.press("G", 14)
    assert.strictEqual(selected(), "s49")
    assert.isDefined(line("s36 "))
    assert.isUndefined(line("s1 "))
    screen.press("\u001b[5~", 14)
    assert.strictEqual(selected(), "s35")
    screen.press("\u001b[H\u001b[D", 14)
    assert.strictEqual(selected(), "▸")
    assert.isUndefined(line("s49"))
  })

  it("interrupts after y only, and only while it is connected", () => {
    const { line, screen } = make()
    screen.press("j", 14)
    assert.isUndefined(screen.press("x", 14))
    assert.isDefined(line("Close the session of s0? y: yes"))
    assert.isUndefined(screen.press("n", 14))
    assert.isUndefined(line("Close the session"))
    screen.press("x", 14)
    expect(screen.press("y", 14)).toMatchObject({ _tag: "Interrupt", row: { id: "server:s0" } })
    screen.isConnected = false
    assert.isUndefined(screen.press("xy", 14))
    screen.press("k", 14)
    screen.isConnected = true
    screen.press("x", 14)
    assert.isDefined(line("This row cannot be interrupted"))
  })

  it("runs the action that a digit chooses, after y if it has a confirmation", () => {
    const { line, screen } = make()
    const confirm = "Its tasks wait until it is resumed, in all processes of the store. ".repeat(3).trim()
    const actions = [{ name: "pause", label: "Pause", confirm }, { name: "now", label: "Check now" }]
    screen.rows.receive(readChanges({ at: 2, set: [session("s0", { actions })] }))
    screen.press("ja", 14)
    assert.isDefined(line("s0:  1 Pause  2 Check now  any other key: none"))
    for (const key of ["3", "y", "\u001b", "0"]) {
      assert.isUndefined(screen.press(key, 14))
      assert.isUndefined(line("1 Pause"))
      screen.press("a", 14)
    }
    expect(screen.press("2", 14)).toMatchObject({ _tag: "Act", row: { id: "server:s0" }, action: { name: "now" } })
    assert.isUndefined(screen.press("a1", 14))
    // The confirmation is shown completely, and the rows make room.
    const drawn = screen.draw(60, 20, 1).split("\r\n")
    assert.strictEqual(drawn.length, 20)
    const asked = drawn.slice(-5).map((one) => one.split("\u001b")[0]!.trim()).join(" ")
    assert.strictEqual(asked, `${confirm} Pause: s0? y: yes, any other key: no`)
    assert.isUndefined(screen.press("n", 14))
    expect(screen.press("a1y", 14)).toMatchObject({ _tag: "Act", action: { name: "pause" } })
    screen.press("ka", 14)
    assert.isDefined(line("This row has no actions"))
    screen.isConnected = false
    screen.press("ja", 14)
    assert.isUndefined(line("1 Pause"))
  })

  it("filters while a text is typed, in which q is a letter, and quits by q and Ctrl-C", () => {
    const { line, screen } = make()
    assert.isUndefined(screen.press("/s4q\u007f\r", 14))
    assert.isDefined(line("filter: s4  (12 rows)"))
    assert.isUndefined(screen.press("\u001b", 14))
    assert.isUndefined(line("filter:"))
    screen.press("i", 14)
    assert.isDefined(line("idle sessions are hidden"))
    for (const key of ["q", "\u0003"]) expect(screen.press(key, 14)).toEqual({ _tag: "Quit" })
    screen.press("/", 14)
    expect(screen.press("\u0003", 14)).toEqual({ _tag: "Quit" })
  })

  it("shows the next row as selected after the end of the selected one", () => {
    const { screen, selected } = make()
    screen.press("jj", 14)
    screen.rows.receive(readChanges({ at: 2, remove: ["server:s1"] }))
    assert.strictEqual(selected(), "s2")
  })
})

/** Runs the command with an output that is recorded. */
const run = (
  argv: ReadonlyArray<string>,
  options: { readonly env?: Record<string, string>; readonly screen?: Screen } = {}
) =>
  Effect.gen(function*() {
    let [out, err] = ["", ""]
    const code = yield* Effect.provideService(runCommand(skeinCommand, skeinArguments(["top", ...argv])), Process, {
      env: options.env ?? {},
      console: {
        print: (text) => Effect.sync(() => void (out += `${text}\n`)),
        warn: (text) => void (err += `${text}\n`)
      },
      terminal: undefined,
      screen: options.screen
    })
    return { code, err, out }
  })

describe("over HTTP", () => {
  it.live("prints the tree once, as text or JSON", () =>
    Effect.scoped(Effect.gen(function*() {
      const { console: { url: at }, url } = yield* kit.open()
      const signal = yield* kit.signal
      yield* Effect.promise(() => kit.visit(url, signal, { name: "Evil\u001b[31m", user: "ada" }))
      const text = yield* run([at, "--once"])
      assert.deepEqual([text.code, text.err], [0, ""])
      expect(text.out).toMatch(
        /^NAME +STATE +WAITS FOR +AGE +PROGRESS +PRINCIPAL +TRACE\n▾ tea house 1\.2\.0 +running +\d answered, 0 failed\n {4}Evil\\u\{1b\}\[31m 3\.1 +idle +messages +\ds +ada\n$/
      )
      // Without a terminal it prints once too.
      assert.include((yield* run([at])).out, "tea house")
      const json = JSON.parse((yield* run([at, "--json"])).out)
      expect(json).toMatchObject({ version: 1, rows: [{ label: "tea house 1.2.0" }, { principal: "ada" }] })
    })))

  it.live("sends the password, and reports a refusal, a missing console and another server", () =>
    Effect.scoped(Effect.gen(function*() {
      const { console: { url: at } } = yield* kit.open({ protect: Console.password("höt tea") })
      const refused = yield* run([at])
      assert.deepEqual([refused.code, refused.out], [4, ""])
      assert.include(refused.err, "refuses this command with 401: set SKEIN_CONSOLE_PASSWORD, or --header")
      assert.strictEqual((yield* run([at], { env: { SKEIN_CONSOLE_PASSWORD: "höt tea" } })).code, 0)
      const authorization = `authorization: Basic ${Buffer.from("a:höt tea").toString("base64")}`
      assert.strictEqual((yield* run([at, "--header", authorization])).code, 0)
      const gone = yield* run(["http://127.0.0.1:1/"])
      assert.strictEqual(gone.code, 3)
      assert.include(gone.err, "The console was not reached")
      const other = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer((request, response) => {
            if (request.url === "/tree") return void response.end("{\"version\":9}")
            if (request.url === "/deep/tree") {
              return void response.end(`{"version":1,"rows":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)
            }
            if (request.url !== "/endless/tree") return void response.end("<html>")
            // Until the command closes the connection.
            response.write("{\"version\":1,\"rows\":\"")
            const fill = (): void => {
              while (!response.destroyed && response.write(" ".repeat(1024 * 1024)));
            }
            response.on("drain", fill)
            fill()
          })
          server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) =>
          Effect.sync(() => server.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => server.close())))
      )
      const origin = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
      for (const path of ["/", "/else/", "/endless/", "/deep/"]) {
        const { code, err } = yield* run([origin + path, "--json"])
        assert.strictEqual(code, 4)
        assert.match(err, /another version of its messages|not a console of Skein/)
      }
    })))

  it.live("shows changes on the screen, interrupts a request, and gives the terminal back", () =>
    Effect.scoped(Effect.gen(function*() {
      const { console: { url: at }, url } = yield* kit.open({}, undefined, { interval: 20 })
      const signal = yield* kit.signal
      let drawn = ""
      let type: ((text: string) => void) | undefined
      const screen: Screen = {
        size: () => ({ columns: 120, rows: 24 }),
        draw: (text) => void (drawn = text),
        open: ({ input }) =>
          Effect.asVoid(Effect.acquireRelease(
            Effect.sync(() => void (type = input)),
            () => Effect.sync(() => void (type = undefined))
          ))
      }
      const shown = (text: string) => Effect.promise(() => kit.until(() => drawn.includes(text)))
      const command = yield* Effect.forkScoped(run([at], { screen }), { startImmediately: true })
      yield* shown("0 sessions")
      const answer = kit.ask(url, signal, "tools/call", { name: "brew", arguments: { tea: "Assam" } })
      yield* shown("tools/call brew")
      type!("jj")
      yield* shown("tools/call brew: for")
      type!("x")
      yield* shown("Interrupt tools/call brew?")
      type!("y")
      yield* shown("tools/call brew: interrupted")
      assert.include(yield* Effect.promise(async () => (await answer).text()), "interrupted by the operator")
      type!("q")
      const { code } = yield* Fiber.join(command)
      assert.strictEqual(code, 0)
      assert.isUndefined(type)
    })))

  it.live("runs an action of a row, and shows the answer", () =>
    Effect.scoped(Effect.gen(function*() {
      let isPaused = false
      const queue = ConsoleSource.layer({
        name: "queue",
        read: () =>
          Effect.succeed({
            nodes: [{
              id: "brew",
              kind: "queue",
              label: "brew",
              state: isPaused ? "paused" : "running",
              actions: [
                isPaused ? { name: "resume", label: "Resume" } : { name: "pause", label: "Pause", confirm: "It waits." }
              ]
            }]
          }),
        act: (_, action) =>
          Effect.sync(() => {
            if (action === "resume") return undefined
            isPaused = true
            return { isDone: true, message: "brew is paused\u001b" }
          })
      })
      const { console: { url: at } } = yield* kit.open({}, queue, { interval: 20 })
      let drawn = ""
      let type: ((text: string) => void) | undefined
      const screen: Screen = {
        size: () => ({ columns: 120, rows: 24 }),
        draw: (text) => void (drawn = text),
        open: ({ input }) => Effect.sync(() => void (type = input))
      }
      const shown = (text: string) => Effect.promise(() => kit.until(() => drawn.includes(text)))
      const command = yield* Effect.forkScoped(run([at], { screen }), { startImmediately: true })
      yield* shown("brew")
      type!("ja")
      yield* shown("brew:  1 Pause")
      type!("1")
      yield* shown("It waits.")
      assert.isFalse(isPaused)
      type!("y")
      yield* shown("brew is paused\\u{1b}")
      yield* shown(" paused ")
      type!("a")
      yield* shown("1 Resume")
      type!("1")
      yield* shown("brew has ended, or does not offer this action now")
      type!("q")
      assert.strictEqual((yield* Fiber.join(command)).code, 0)
    })))
})
