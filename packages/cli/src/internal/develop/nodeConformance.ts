/**
 * `skein conformance`: tests a server with the official suite, `@modelcontextprotocol/conformance`.
 *
 * The suite is a program of its own: an installed copy, or one that npx downloads. It needs a URL, so a command that
 * serves stdio is served over HTTP by the bridge of `skein dev`, with a server process for each session.
 */
import { wellFormed } from "@skein/protocol/Text"
import * as Stdio from "@skein/client/Stdio"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, sep } from "node:path"
import { makeSignIns } from "../accounts/callCredentials.ts"
import { commandOf, connect, onServer, resolveEnv, type ServerInvocation } from "../connection/connection.ts"
import { sanitize, serverStderr } from "../base/format.ts"
import { CommandFailed, failed, Process, promised } from "../base/process.ts"
import {
  type Check,
  formatReport,
  isConformant,
  judge,
  parseExpected,
  type ScenarioResult
} from "./conformanceReport.ts"
import { forward } from "./nodeForward.ts"
import { type BridgeBounds, serveBridge } from "./nodeHttpBridge.ts"
import { findDependency } from "./nodeLoadModule.ts"
import { killGroup } from "./nodeRestart.ts"

/** A parsed command line of `conformance`. */
export interface ConformanceLine
  extends BridgeBounds, Pick<ServerInvocation, "target" | "headers" | "env" | "inputs" | "signIn">
{
  readonly exportName: string | undefined
  readonly revision: string | undefined
  readonly suite: string | undefined
  readonly scenario: string | undefined
  readonly expectedFailures: string | undefined
  readonly suiteVersion: string
  /** How long one scenario may take, in milliseconds. */
  readonly timeout: number
  /** How long the suite may take, in milliseconds. */
  readonly totalTimeout: number
  /** In milliseconds. */
  readonly closeTimeout: number
  readonly verbose: boolean
  readonly json: boolean
}

const suite = "@modelcontextprotocol/conformance"

// The requirement sets that the suite has. At other revisions all of its scenarios for the revision run.
const required: ReadonlySet<string> = new Set(["2025-11-25", "2026-07-28"])

/** How the suite is started. */
interface Program {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly label: string
}

/** The installed suite of the project or of this program, if it has the version; otherwise npx with the version. */
const programOf = async (version: string): Promise<Program> => {
  for (const from of [join(process.cwd(), "package.json"), import.meta.filename]) {
    const manifest = findDependency(`${suite}/package.json`, from)
    if (manifest === undefined) continue
    const { bin, version: installed } = JSON.parse(await readFile(manifest, "utf8")) as {
      readonly version: string
      readonly bin: string | Readonly<Record<string, string>>
    }
    const file = typeof bin === "string" ? bin : Object.values(bin)[0]
    if (installed !== version || file === undefined) continue
    return { command: process.execPath, args: [join(dirname(manifest), file)], label: `${suite} ${version}` }
  }
  const npx = process.platform === "win32" ? "npx.cmd" : "npx"
  return { command: npx, args: ["--yes", `${suite}@${version}`], label: `${suite} ${version}, with npx` }
}

interface Output {
  readonly code: number | null
  readonly text: string
}

// How much of the output of the suite is kept, in characters.
const maxOutput = 1024 * 1024

// How much of the output is reported if there are no results, in characters.
const maxQuoted = 2_000

/** Runs a program to its end. Its process group is killed when the command is interrupted, or after `timeout`. */
const runProgram = (
  { args, command }: Program,
  more: ReadonlyArray<string>,
  timeout: number
): Effect.Effect<Output, CommandFailed> =>
  Effect.callback<Output, CommandFailed>((resume) => {
    const isWindows = process.platform === "win32"
    let text = ""
    const child = spawn(command, [...args, ...more], {
      stdio: ["ignore", "pipe", "pipe"],
      detached: !isWindows,
      shell: isWindows
    })
    const keep = (chunk: string): void => void (text = (text + chunk).slice(-maxOutput))
    child.stdout!.setEncoding("utf8").on("data", keep)
    child.stderr!.setEncoding("utf8").on("data", keep)
    child.once("error", (error) => resume(Effect.fail(failed(3, `${command} cannot be started: ${error.message}`))))
    child.once("close", (code) => resume(Effect.succeed({ code, text })))
    return Effect.sync(() => killGroup(child, "SIGKILL"))
  }).pipe(Effect.timeoutOrElse({
    duration: timeout,
    orElse: () => Effect.fail(failed(3, `The conformance suite did not end within ${timeout / 1_000} seconds`))
  }))

/** The results that the suite has written: a folder `server-<scenario>-<time>` for each scenario, whose name may have a slash. */
const readResults = async (folder: string): Promise<ReadonlyArray<ScenarioResult>> => {
  const results: Array<ScenarioResult> = []
  for (const entry of await readdir(folder, { recursive: true })) {
    const name = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry.replaceAll(sep, "/"))?.[1]
    if (name === undefined) continue
    const text = await readFile(join(folder, entry, "checks.json"), "utf8").catch(() => undefined)
    if (text !== undefined) results.push({ name, checks: JSON.parse(text) as ReadonlyArray<Check> })
  }
  return results
}

/** The scenarios that the suite could not complete, and why. */
const incomplete = (text: string): ReadonlyArray<ScenarioResult> =>
  Array.from(text.matchAll(/^Failed to run scenario ([^:\n]+): ?([^\n]*)/gm), ([, name = "", problem = ""]) => ({
    name,
    checks: [],
    problem: problem === "" ? "The scenario did not complete" : problem
  }))

/** The scenarios to run, as options of the suite. */
const selectionOf = ({ revision, scenario, suite: name }: ConformanceLine): ReadonlyArray<string> => {
  const version = revision === undefined ? [] : ["--spec-version", revision]
  if (scenario !== undefined) return ["--scenario", scenario, ...version]
  if (name !== undefined) return ["--suite", name, ...version]
  if (revision === undefined) return []
  return required.has(revision) ? ["--requirements", revision] : ["--suite", "all", ...version]
}

const expectedOf = async (file: string | undefined): Promise<ReadonlySet<string>> => {
  if (file === undefined) return new Set()
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw failed(2, `The file of --expected-failures cannot be read: ${reason}`)
  })
  const names = parseExpected(text)
  if (names !== undefined) return names
  const report = `The file ${file} has no list of scenarios: the key server, and a line "- <scenario>" for each`
  throw failed(2, report)
}

/** The URL of a bridge to the server of a command. */
const bridged = Effect.fnUntraced(function*(
  { maxBodyBytes, maxSessions }: ConformanceLine,
  { connect }: Transport
): Effect.fn.Return<string, CommandFailed, Process | Scope.Scope> {
  const { console } = yield* Process
  return yield* serveBridge({
    host: "127.0.0.1",
    port: 0,
    maxSessions,
    maxBodyBytes,
    warn: (text) => console.warn(`skein conformance: ${sanitize(text)}`),
    connect
  })
})

/** Connects once, so that a person signs in before the time of the scenarios begins. */
const signIn = (line: ConformanceLine): Effect.Effect<void, CommandFailed, Process> => {
  const invocation = { ...line, revision: undefined, timeout: undefined }
  return onServer(invocation, (server) => Effect.as(Effect.scoped(connect(server, invocation)), 0))
}

/** The URL of a server, or that of a forwarder, if its requests need headers or stored tokens. */
const authorized = Effect.fnUntraced(function*(
  { maxBodyBytes }: ConformanceLine,
  url: URL,
  headers: Readonly<Record<string, string>>
): Effect.fn.Return<string, CommandFailed, Process | Scope.Scope> {
  const signIns = yield* makeSignIns(undefined)
  const credentials = signIns.credentials(url, headers)
  yield* signIns.prepared
  const tokens = credentials === undefined ? {} : yield* Effect.mapError(
    credentials.headers({ method: "POST", url, server: url }),
    (error) => failed(3, error instanceof Error ? error.message : String(error))
  )
  return Object.keys({ ...headers, ...tokens }).length === 0
    ? url.href
    : yield* forward({ url, headers, credentials, maxBodyBytes })
})

/** The URL for the suite: that of the server, of a forwarder, or of a bridge to a command. */
const urlOf = (line: ConformanceLine): Effect.Effect<string, CommandFailed, Process | Scope.Scope> =>
  Effect.gen(function*() {
    const { console, env, terminal } = yield* Process
    const { closeTimeout, inputs, target, verbose } = line
    if (line.signIn !== undefined) yield* signIn(line)
    if (target._tag === "Url") return yield* authorized(line, target.url, line.headers)
    if (target._tag === "Configured") {
      const { configuredIn } = yield* Effect.promise(() => import("../connection/config.ts"))
      const options = { closeTimeout, console, credentials: () => undefined, env, inputs, terminal, verbose }
      const { entry, server } = yield* configuredIn(target, options)
      if (entry.type === "stdio") return yield* bridged(line, server.transport)
      const report = `The server ${JSON.stringify(entry.name)} has the type sse, which the suite does not have`
      if (entry.type === "sse") return yield* failed(2, report)
      return yield* authorized(line, new URL(entry.url), entry.headers)
    }
    const { args, command } = yield* commandOf(target, line.exportName)
    const stderr = serverStderr(verbose, console)
    const started = Stdio.transport({
      command,
      args,
      env: resolveEnv(line.env, env),
      stderr,
      shutdownTimeout: closeTimeout
    })
    return yield* bridged(line, started)
  })

/** Runs the suite, prints the table, and fails with exit code 1 if a scenario failed. */
export const conformance = (line: ConformanceLine): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console } = yield* Process
    const expected = yield* promised(() => expectedOf(line.expectedFailures))
    const program = yield* promised(() => programOf(line.suiteVersion))
    const url = yield* urlOf(line)
    const shown = line.target._tag === "Url" ? line.target.url.href : url
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "skein-conformance-"))),
      (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
    )
    if (!line.json) console.warn(`${program.label}, against ${sanitize(shown)}`)
    const { code, text } = yield* runProgram(program, [
      "server",
      "--url",
      url,
      ...selectionOf(line),
      "--timeout",
      String(line.timeout),
      "-o",
      folder
    ], line.totalTimeout)
    if (line.verbose) console.warn(sanitize(text))
    const results = yield* Effect.promise(() => readResults(folder))
    const names = new Set(results.map(({ name }) => name))
    const all = [...results, ...incomplete(text).filter(({ name }) => !names.has(name))]
    if (all.length === 0) {
      return yield* failed(
        3,
        `The conformance suite ended with ${code}, without results: ${wellFormed(text.trim().slice(-maxQuoted))}`
      )
    }
    const judged = judge(all, expected)
    const conforms = isConformant(judged)
    yield* console.print(
      line.json
        ? JSON.stringify({ suite, version: line.suiteVersion, conforms, scenarios: judged }, undefined, 2)
        : formatReport(judged, console.colors?.out),
      !line.json
    )
    if (!conforms) return yield* new CommandFailed({ exitCode: 1 })
  }).pipe(Effect.scoped)
