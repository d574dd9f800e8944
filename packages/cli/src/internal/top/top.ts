/**
 * Runs `skein top`: reads the console of a server, once or live.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { printable } from "@skein/protocol/Text"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { hasColors } from "../base/colors.ts"
import { quoteLine, readJsonBody } from "../base/format.ts"
import { CommandFailed, failed, Process, type Screen } from "../base/process.ts"
import { headOf, lineOf, makeTree, readChanges, type Row, type RowAction } from "./topRows.ts"
import { TopScreen } from "./topScreen.ts"

/** A parsed command line of `top`. */
export interface TopLine {
  /** The URL of the console. */
  readonly url: URL
  readonly json: boolean
  readonly once: boolean
  readonly headers: Readonly<Record<string, string>>
}

// The version of the messages that this command reads.
const version = 1

// How long the command waits before it connects again, and how long for an event that is late, in milliseconds.
const retryAfter = 2_000
const patience = 5_000

// How much of the answer to an action is shown, in characters.
const maxMessage = 400

// The most characters of one event, and of the answer to one request, so that a wrong server cannot fill the memory.
const maxEventChars = 32 * 1024 * 1024

/** Sends a request to the console. Redirects are not followed: they could carry the password elsewhere. */
const send = async (line: TopLine, path: string, init: RequestInit = {}): Promise<Response> => {
  let response: Response
  try {
    response = await fetch(new URL(path, line.url), {
      ...init,
      headers: { ...line.headers, ...init.headers as Record<string, string> },
      redirect: "manual"
    })
  } catch (error) {
    if (init.signal?.aborted === true) throw error
    const { cause, message } = error as Error
    throw failed(3, `The console was not reached: ${quoteLine(cause instanceof Error ? cause.message : message)}`)
  }
  if (response.ok) return response
  await response.body?.cancel()
  const { status } = response
  throw failed(
    4,
    status === 401 || status === 403
      ? `The console refuses this command with ${status}: set SKEIN_CONSOLE_PASSWORD, or --header`
      : status === 503
      ? "The console refuses this command with 503: too many viewers are connected"
      : `This is not a console of Skein: it answers ${status}`
  )
}

const json = async (response: Response): Promise<JsonObject> => {
  const value: unknown = await readJsonBody(response, maxEventChars).catch(() => undefined)
  if (!isObject(value)) throw failed(4, "This is not a console of Skein: its answer is not a JSON object")
  return value
}

const checkVersion = (hello: JsonObject): void => {
  if (hello["version"] === version) return
  throw failed(4, "The console has another version of its messages: use the same version of skein as the server")
}

/** Reads the tree. Fails if this is not a console of this version. */
const readTree = (line: TopLine): Effect.Effect<JsonObject, CommandFailed> =>
  Effect.tryPromise({
    try: async (signal) => {
      const tree = await json(await send(line, "tree", { signal }))
      checkVersion(tree)
      return tree
    },
    catch: (error) => error instanceof CommandFailed ? error : failed(3, `The console was lost: ${String(error)}`)
  })

/** Prints the tree once. */
const once = (line: TopLine): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console, screen } = yield* Process
    const tree = yield* readTree(line)
    if (line.json) return yield* console.print(JSON.stringify(tree, undefined, 2))
    const rows = makeTree()
    rows.receive(readChanges({ ...tree, set: tree["rows"] }))
    const width = Math.max(100, screen?.size().columns ?? 140)
    const lines = rows.visible({ filter: "", busyOnly: false }).map((visible) =>
      lineOf(visible, width, rows.at).trimEnd()
    )
    yield* console.print([headOf(width).trimEnd(), ...lines].join("\n"))
  })

/** Reads the events of the console until it is lost. `received` is called for each. */
const read = async (
  line: TopLine,
  signal: AbortSignal,
  received: (name: string, data: JsonObject) => void
): Promise<never> => {
  const response = await send(line, "events", { signal })
  let text = ""
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n")
      text = text.slice(end + 2)
      const of = (name: string) => lines.find((one) => one.startsWith(`${name}: `))?.slice(name.length + 2)
      const data: unknown = JSON.parse(of("data") ?? "null")
      if (isObject(data)) received(of("event") ?? "", data)
    }
    if (text.length > maxEventChars) throw new Error("an event is too long")
  }
  throw new Error("the server has closed the connection")
}

/** Shows the tree until the user quits. */
const live = (line: TopLine, screen: Screen): Effect.Effect<void, CommandFailed, Process | Scope.Scope> =>
  Effect.gen(function*() {
    const { env } = yield* Process
    const top = new TopScreen(hasColors(env, true))
    const quit = yield* Deferred.make<void>()
    let instance = ""
    let interval = 1_000
    // The first answer decides whether this is a console: its failure ends the command.
    yield* readTree(line)
    const draw = (): void => {
      const { columns, rows } = screen.size()
      screen.draw(top.draw(columns, rows, Date.now()))
    }
    const post = async (path: string, members: object): Promise<JsonObject> => {
      const headers = { "content-type": "application/json" }
      const body = JSON.stringify({ instance, ...members })
      return json(await send(line, path, { method: "POST", headers, body }))
    }
    /** Shows the outcome of an action, or why it failed. */
    const notify = async (outcome: Promise<string>, failure: string): Promise<void> => {
      try {
        top.notice = await outcome
      } catch (error) {
        top.notice = `${failure}: ${error instanceof CommandFailed ? error.report : String(error)}`
      }
      draw()
    }
    const interrupt = async ({ id, label }: Row): Promise<string> => {
      const { outcome } = await post("interrupt", { id })
      if (outcome === "Interrupted") return `${label}: interrupted`
      return outcome === "Restarted"
        ? "The server has restarted: nothing was interrupted"
        : `${label} had ended already`
    }
    const act = async ({ id, label }: Row, action: RowAction): Promise<string> => {
      const { message, outcome } = await post("act", { id, action: action.name })
      if (outcome === "Restarted") return "The server has restarted: nothing was done"
      if (typeof message === "string") return printable(message, maxMessage)
      return outcome === "Done"
        ? `${label}: ${action.label}: done`
        : `${label} has ended, or does not offer this action now`
    }
    // When the last event arrived.
    let heardAt = Date.now()
    const connect = (signal: AbortSignal): Promise<never> =>
      read(line, signal, (name, data) => {
        heardAt = Date.now()
        if (name === "hello") {
          checkVersion(data)
          instance = typeof data["instance"] === "string" ? data["instance"] : ""
          if (typeof data["interval"] === "number") interval = data["interval"]
        } else if (name === "rows" && top.rows.receive(readChanges(data))) {
          top.skew = heardAt - top.rows.at
          top.status = "live"
          top.isConnected = true
          draw()
        }
      })
    const reading = Effect.tryPromise({
      try: connect,
      catch: (error) => error instanceof CommandFailed ? error.report : (error as Error).message
    })
    const late = Effect.gen(function*() {
      while (Date.now() - heardAt <= patience + 3 * interval) yield* Effect.sleep(1_000)
      return yield* Effect.fail("the server does not send")
    })
    const again = Effect.forever(Effect.andThen(
      Effect.catch(Effect.raceFirst(reading, late), (reason) =>
        Effect.sync(() => {
          top.status = `connection lost (${quoteLine(reason ?? "")}), reconnecting…`
          top.isConnected = false
          draw()
        })),
      Effect.andThen(Effect.sleep(retryAfter), Effect.sync(() => (heardAt = Date.now())))
    ))
    // Ages grow without events too.
    const tick = Effect.forever(Effect.andThen(Effect.sleep(1_000), Effect.sync(draw)))
    yield* screen.open({
      input: (text) => {
        const action = top.press(text, TopScreen.pageSize(screen.size().rows))
        if (action?._tag === "Quit") return Deferred.doneUnsafe(quit, Effect.void)
        if (action?._tag === "Interrupt") void notify(interrupt(action.row), `${action.row.label} was not interrupted`)
        if (action?._tag === "Act") {
          void notify(act(action.row, action.action), `${action.row.label}: the action failed`)
        }
        draw()
      },
      resized: draw
    })
    yield* Effect.forkScoped(again)
    yield* Effect.forkScoped(tick)
    yield* Deferred.await(quit)
  })

/** Runs the command. */
export const top = Effect.fnUntraced(function*(line: TopLine): Effect.fn.Return<void, CommandFailed, Process> {
  const { env, screen } = yield* Process
  const password = env["SKEIN_CONSOLE_PASSWORD"]
  const base = line.url.href.endsWith("/") ? line.url : new URL(`${line.url.href}/`)
  const headers = password === undefined || password === "" ? line.headers : {
    authorization: `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`skein-top:${password}`)))}`,
    ...line.headers
  }
  const to = { ...line, url: base, headers }
  if (line.once || line.json || screen === undefined) return yield* once(to)
  yield* Effect.scoped(live(to, screen))
})
