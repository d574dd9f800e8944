/** A headless Chromium that tests drive by the DevTools protocol. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

/** A tab. Each has cookies of its own. */
export interface Tab {
  readonly goto: (url: string | URL) => Promise<void>
  /** The value of an expression in the page. */
  readonly evaluate: (expression: string) => Promise<unknown>
  /** Waits until an expression is true. A page that is left meanwhile is waited for again. */
  readonly until: (expression: string) => Promise<void>
  /** Presses the button with this value, and waits for the next page. */
  readonly press: (value: string) => Promise<void>
  /** Sends a command of the DevTools protocol to the tab. */
  readonly send: (method: string, params?: object) => Promise<unknown>
  /**
   * Evaluates an expression in the frames of the page, at any depth and of any origin, until it is true in one of them.
   * Returns its value there.
   */
  readonly untilInFrame: (expression: string) => Promise<unknown>
  /** Chooses files of this machine for the input that an expression finds in a frame, as a user does in the dialog. */
  readonly chooseFiles: (expression: string, files: ReadonlyArray<string>) => Promise<void>
  /** Waits until the console of the page has a message with this text. */
  readonly logged: (text: string) => Promise<void>
}

const flags = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-extensions",
  "--disable-background-networking",
  "--no-first-run",
  "--remote-debugging-port=0"
]

interface LogEntry {
  readonly sessionId: string
  readonly text: string
}

/** A document of a frame, in which expressions run. */
interface FrameContext {
  readonly sessionId: string
  readonly id: number
}

type Send = (method: string, params?: object, sessionId?: string) => Promise<any>

const connect = async (
  address: string
): Promise<{
  readonly send: Send
  readonly close: () => void
  readonly logs: ReadonlyArray<LogEntry>
  readonly watchFrames: (sessionId: string) => Promise<() => ReadonlyArray<FrameContext>>
}> => {
  const socket = new WebSocket(address)
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve)
    socket.addEventListener("error", () => reject(new Error("Chromium refused the connection")))
  })
  const logs: Array<LogEntry> = []
  const waiting = new Map<number, { readonly resolve: (value: any) => void; readonly reject: (error: Error) => void }>()
  socket.addEventListener("message", ({ data }) => {
    const { error, id, method, params, result, sessionId } = JSON.parse(String(data))
    if (method === "Log.entryAdded") logs.push({ sessionId, text: params.entry.text })
    if (method === "Runtime.executionContextCreated") contexts.push({ sessionId, id: params.context.id })
    if (method === "Target.attachedToTarget" && watched.has(sessionId)) {
      watch(params.sessionId).catch(() => watched.delete(params.sessionId))
    }
    const call = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) call?.resolve(result)
    else call?.reject(new Error(error.message))
  })
  let next = 0
  const send: Send = (method, params = {}, sessionId) =>
    new Promise((resolve, reject) => {
      const id = ++next
      waiting.set(id, { resolve, reject })
      socket.send(JSON.stringify({ id, method, params, sessionId }))
    })
  const contexts: Array<FrameContext> = []
  const watched = new Set<string>()
  // A frame of another site has a session of its own, and so have the frames in it.
  const watch = async (sessionId: string): Promise<void> => {
    watched.add(sessionId)
    await send("Runtime.enable", {}, sessionId)
    await send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true }, sessionId)
  }
  return {
    logs,
    send,
    close: () => socket.close(),
    watchFrames: async (sessionId) => {
      if (!watched.has(sessionId)) await watch(sessionId)
      return () => contexts.filter((context) => watched.has(context.sessionId))
    }
  }
}

const launch = (chromium: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const profile = mkdtempSync(join(tmpdir(), "skein-proxy-browser-"))
      const child = spawn(chromium, [...flags, `--user-data-dir=${profile}`, "about:blank"], {
        detached: true,
        stdio: "ignore"
      })
      const ended = new Promise((resolve) => child.once("exit", resolve))
      for (let attempt = 0; attempt < 1_200; attempt++) {
        try {
          const [port, path] = readFileSync(join(profile, "DevToolsActivePort"), "utf8").split("\n")
          return { child, ended, profile, ...await connect(`ws://127.0.0.1:${port}${path}`) }
        } catch {
          await sleep(50)
        }
      }
      throw new Error(`${chromium} did not open its port`)
    }),
    ({ child, close, ended, profile }) =>
      Effect.promise(async () => {
        close()
        // The process is the leader of its group.
        if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
        await ended
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
      })
  )

/** Starts a browser, and returns a function that opens a tab. */
export const browser = (chromium: string) =>
  Effect.map(launch(chromium), ({ logs, send, watchFrames }) => async (): Promise<Tab> => {
    const { browserContextId } = await send("Target.createBrowserContext")
    const { targetId } = await send("Target.createTarget", { url: "about:blank", browserContextId })
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true })
    const evaluate = async (expression: string): Promise<unknown> =>
      (await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true }, sessionId)).result.value
    const until = async (expression: string): Promise<void> => {
      for (let attempt = 0; attempt < 1_200; attempt++) {
        if (await evaluate(`Boolean(${expression})`).catch(() => false) === true) return
        await sleep(50)
      }
      throw new Error(`the page never had ${expression}: ${await evaluate("location.href + document.body.innerText")}`)
    }
    /** Evaluates an expression in the frames, until `read` returns a value for one of them. */
    const inFrames = async (
      expression: string,
      returnByValue: boolean,
      read: (answer: any, sessionId: string) => Promise<unknown>
    ): Promise<unknown> => {
      const frames = await watchFrames(sessionId)
      for (let attempt = 0; attempt < 1_200; attempt++) {
        for (const { id, sessionId } of frames()) {
          const params = { expression, contextId: id, returnByValue, awaitPromise: true }
          // A context may be gone.
          const value = await send("Runtime.evaluate", params, sessionId)
            .then((answer) => read(answer, sessionId))
            .catch(() => undefined)
          if (value !== undefined && value !== false && value !== null && value !== "") return value
        }
        await sleep(50)
      }
      throw new Error(`no frame ever had ${expression}: ${await evaluate("location.href + document.body.innerText")}`)
    }
    await send("Page.enable", {}, sessionId)
    await send("Log.enable", {}, sessionId)
    return {
      evaluate,
      until,
      send: (method, params) => send(method, params, sessionId),
      goto: async (url) => {
        await send("Page.navigate", { url: String(url) }, sessionId)
        await until("document.readyState === 'complete' && location.href !== 'about:blank'")
      },
      press: async (value) => {
        await until(`document.querySelector('button[value="${value}"]')`)
        await evaluate(`(window.left = false, document.querySelector('button[value="${value}"]').click())`)
        // The next page is another window.
        await until("window.left === undefined && document.readyState === 'complete'")
      },
      untilInFrame: (expression) =>
        inFrames(expression, true, async ({ result }) => result.subtype === "error" ? undefined : result.value),
      chooseFiles: async (expression, files) => {
        await inFrames(expression, false, async ({ result: { objectId } }, frame) => {
          if (objectId === undefined) return undefined
          await send("DOM.setFileInputFiles", { files, objectId }, frame)
          return true
        })
      },
      logged: async (text) => {
        for (let attempt = 0; attempt < 1_200; attempt++) {
          if (logs.some((entry) => entry.sessionId === sessionId && entry.text.includes(text))) return
          await sleep(50)
        }
        throw new Error(`the console never had ${text}: ${JSON.stringify(logs)}`)
      }
    }
  })
