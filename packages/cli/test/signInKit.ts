/** `skein` as a process, with a protected server and a program that acts as the browser of a person. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"

const root = join(import.meta.dirname, "../../..")
export const node = [process.execPath, "--conditions=@skein/source"] as const
export const program = join(root, "packages/cli/src/bin/skein.ts")

export interface Counts {
  readonly registrations: number
  readonly authorizations: number
  readonly refreshes: number
  readonly refreshReuses: number
  readonly revocations: number
}

export interface Protected {
  readonly url: string
  readonly issuer: string
  /** The metadata of the server, with `metadataElsewhere`. */
  readonly metadata?: string
  /** Asks the authorization server what happened. `revoke` ends all grants first. */
  readonly counts: (revoke?: "revoke") => Promise<Counts>
}

/** Starts a protected server, with options of its `DevServer`. */
export const protectedServer = (options: object = {}): Effect.Effect<Protected, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const text = JSON.stringify({ signInAs: "ada", ...options })
        const file = join(import.meta.dirname, "protectedServer.ts")
        const child = spawn(node[0], [...node.slice(1), file, text], { cwd: root, stdio: ["pipe", "pipe", "inherit"] })
        const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
        const first = await lines.next()
        return {
          child,
          lines,
          at: JSON.parse(String(first.value)) as Omit<Protected, "counts">
        }
      }),
      ({ child }) =>
        Effect.promise(async () => {
          const ended = once(child, "close")
          child.stdin.end()
          await ended
        })
    ),
    ({ at, child, lines }) => ({
      ...at,
      counts: async (revoke) => {
        child.stdin.write(`${revoke ?? "counts"}\n`)
        return JSON.parse(String((await lines.next()).value)) as Counts
      }
    })
  )

/** A person with a computer: a folder for data, and a browser. */
export interface Person {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The URLs that the browser was opened with. */
  readonly visits: () => ReadonlyArray<URL>
}

// Follows redirects with cookies, as a browser does, and appends the URL that it was opened with to a file.
const browser = (log: string, answer: "allow" | "deny" | "nothing" | "slow"): string => `
const { appendFileSync } = require("node:fs")
appendFileSync(${JSON.stringify(log)}, process.argv[2] + "\\n")
const cookies = new Map()
const visit = async (url) => {
  for (let pages = 0; url !== undefined && pages < 20; pages++) {
    const cookie = [...cookies].map(([name, value]) => name + "=" + value).join("; ")
    const answer = await fetch(url, { redirect: "manual", headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
      cookies.set(name, value)
    }
    const to = answer.headers.get("location")
    url = to === null ? undefined : new URL(to, url)
  }
}
const start = new URL(process.argv[2])
const { redirect_uri, state } = Object.fromEntries(start.searchParams)
const denied = redirect_uri + "?error=access_denied&error_description=planted&state=" + state + "&iss=" +
  encodeURIComponent(start.origin)
${
  answer === "slow"
    ? "setTimeout(() => visit(start), 6000)"
    : answer === "nothing"
    ? ""
    : answer === "deny"
    ? "visit(denied)"
    : "visit(start)"
}
`

/** A person whose browser answers, or has none. */
export const person = (
  answer: "allow" | "deny" | "nothing" | "slow" | "no browser" = "allow"
): Effect.Effect<Person, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-cli-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    ),
    (folder) => {
      const log = join(folder, "visits")
      const file = join(folder, "browser")
      if (answer !== "no browser") {
        writeFileSync(file, `#!${process.execPath}\n${browser(log, answer)}`)
        chmodSync(file, 0o755)
      }
      return {
        folder,
        env: { BROWSER: answer === "no browser" ? "none" : file, XDG_DATA_HOME: folder },
        // The browser may be writing its line: only complete lines count.
        visits: () =>
          existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1).map((line) => new URL(line)) : []
      }
    }
  )

export interface Run {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  readonly ended: Promise<{ readonly code: number | string; readonly out: string; readonly err: string }>
}

const everything: Array<string> = []

/** The output of all runs of `skein` in this process, except for those on a terminal. */
export const allOutput = (): string => everything.join("\n")

/** Starts a command of a process. */
export const start = (env: Person["env"], command: string, ...args: ReadonlyArray<string>): Run => {
  const child = spawn(command, args, {
    cwd: root,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...env },
    stdio: ["pipe", "pipe", "pipe"]
  })
  let [out, err] = ["", ""]
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
  const ended = once(child, "close").then(([code, signal]: ReadonlyArray<number | string>) => {
    // A terminal shows what the person pastes.
    if (command === node[0]) everything.push(out, err)
    return { code: code ?? signal!, out, err }
  })
  return { child, out: () => out, err: () => err, ended }
}

/** Runs `skein` to its end. */
export const skein = (env: Person["env"], ...args: ReadonlyArray<string>) =>
  Effect.promise(() => start(env, node[0], ...node.slice(1), program, ...args).ended)
