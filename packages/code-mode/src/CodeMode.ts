/**
 * Code mode: a model writes a program that calls the tools of the server, and receives only the result of the program.
 *
 * With many tools, and with results that are only needed to compute something else, calls one by one fill the context of a
 * model. The definitions that `CodeMode.layer` wraps are not listed. A model finds tools with `search_tools`, reads the
 * schemas of one with `describe_tool`, and runs a program with `execute`. The program runs in a sandbox (`Sandbox`), and
 * everything about it is bounded.
 *
 * @example
 * const server = McpServer.layer(
 *   { name: "office", version: "1.0.0" },
 *   CodeMode.layer({}, OpenApi.layer(mail), OpenApi.layer(calendar))
 * )
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as ClientKey from "@skein/runtime/ClientKey"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import { resolve, type Resolved } from "@skein/runtime/Options"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as HiddenTools from "@skein/server/HiddenTools"
import { McpRequest } from "@skein/server/McpRequest"
import * as Tool from "@skein/server/Tool"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { callsOf } from "./internal/calls/calls.ts"
import { InputClock } from "./internal/calls/inputClock.ts"
import { signatureOf } from "./internal/calls/signature.ts"
import { FixedBounds } from "./internal/sandbox/program.ts"
import { LimitExceeded, ProgramError } from "./ProgramError.ts"
import { Sandbox } from "./Sandbox.ts"

/** The bounds of programs. */
export interface Limits {
  /**
   * How long a program may take: 30 seconds by default. The time in which it waits for a person does not count. Raise it for
   * slow tools.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * How long a program may compute in total: 1 second by default. The time in which it waits for tools does not count. Raise
   * it for programs that sort or search large results.
   */
  readonly computingTimeout?: Duration.Input | undefined
  /**
   * The memory of a program's values, with their overhead: 32 MiB by default, at least 1 MiB. Raise it for large results,
   * and lower it where memory is scarce.
   */
  readonly maxMemoryBytes?: number | undefined
  /** The most calls of tools in one program: 100 by default. Lower it for tools that cost money. */
  readonly maxCalls?: number | undefined
  /** The most bytes of JSON in the result of a program: 65,536 by default. Raise it for models with a large context. */
  readonly maxResultBytes?: number | undefined
  /**
   * How many programs of all clients run at the same time: 8 by default. Each has a thread. Raise it for a server with
   * many cores. Further ones are refused.
   */
  readonly maxRuns?: number | undefined
  /**
   * How many of these one client may have, so that it cannot lock out others. Unless it is set: three quarters of
   * `maxRuns`, rounded up. A client is a principal, else a network address, else a session.
   */
  readonly maxPerClient?: number | undefined
}

/** The options of code mode. */
export interface Options extends HiddenTools.Options {
  /**
   * The number of tools up to which all are listed, and those of code mode are not: 0 by default, so that code mode is
   * always on.
   */
  readonly above?: number | undefined
  /** The names of the three tools: `search_tools`, `describe_tool` and `execute` by default. */
  readonly names?: {
    readonly search?: string | undefined
    readonly describe?: string | undefined
    readonly execute?: string | undefined
  } | undefined
  /** The bounds of programs. */
  readonly limits?: Limits | undefined
}

const minMemoryBytes = 1024 * 1024

/** How many calls of one program run at the same time. Further ones wait. */
const maxConcurrentCalls = 8

/** The longest signature of a tool in the results of a search. A longer one is left out. */
const maxSignatureChars = 1000

const resolved = (limits: Limits): Resolved<Omit<Limits, "maxPerClient">> =>
  resolve<Omit<Limits, "maxPerClient">>(limits, {
    maxMemoryBytes: 32 * 1024 * 1024,
    maxCalls: 100,
    maxResultBytes: 65_536,
    maxRuns: 8
  }, { timeout: "30 seconds", computingTimeout: "1 second" })

/**
 * Hides the tools of definitions behind a sandbox for programs. Resources, prompts and middleware among the definitions
 * stay as they are.
 *
 * - `search_tools` and `describe_tool` are those of `ToolSearch`: they return only tools that the caller may see and call. A
 *   search returns the signature of each tool in TypeScript.
 * - `execute` runs a program: `code` is the body of an async function. In it, `await tools.name(args)` and
 *   `await callTool("name", args)` call a tool and return its structured content, or its text. A call that fails throws an
 *   `Error` with the text of the tool. The result is the JSON of the returned value, and the lines of `console.log`.
 * - Each call passes all middleware, guards and extensions, as if the client had sent it. `execute` and the two others
 *   cannot be called from a program.
 * - A program reaches nothing else: no network, files, timers, modules or objects of the server.
 * - Cancelling `execute` ends the program, and the calls that it waits for. So does the end of the program for calls that
 *   it has not awaited.
 * - A tool may ask the user. In the stateless revision the program then runs again from its start, and calls that have
 *   succeeded return their recorded results, unless the tool has the hint `readOnlyHint` or `idempotentHint`.
 *
 * A program that fails is a result with `isError`, whose text has the line and the column in the code of the model. Fails
 * as the definitions do, and with `DefinitionError` `DuplicateName` if a name of the three tools is taken.
 *
 * @example
 * const office = CodeMode.layer({ limits: { timeout: "1 minute", maxCalls: 20 } }, ...tools)
 */
export const layer = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  options: Options,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog> =>
  HiddenTools.layer({ ...options, above: options.above ?? 0 }, definitions, (hidden) => addTools(options, hidden))

const limitExceeded = (limit: LimitExceeded["limit"], message: string) =>
  Effect.fail(new ProgramError(new LimitExceeded({ message, limit })))

const tooManyRuns = (limit: LimitExceeded["limit"], most: string) =>
  limitExceeded(limit, `At most ${most} run at the same time (${limit}). Try again later`)

const addTools = (options: Options, hidden: HiddenTools.HiddenTools) => {
  const { limits = {}, names = {} } = options
  const { computingTimeout, maxCalls, maxMemoryBytes, maxResultBytes, maxRuns, timeout } = resolved(limits)
  const { describe = "describe_tool", execute = "execute", search = "search_tools" } = names
  const executeTool = Tool.make(execute, {
    description: [
      "Runs a JavaScript program that calls tools and computes with their results. Only what it returns is sent back.",
      "The code is the body of an async function. `await tools.NAME(args)` or `await callTool(\"NAME\", args)` returns the",
      "structured content of a tool, or its text, and throws an Error if the tool fails. End with `return value`: the value",
      "is sent as JSON. `console.log` adds lines to the result. There is no network, file system, timer or module.",
      `Find tools with ${search}, and read their schemas with ${describe}.`
    ].join(" "),
    input: { code: Schema.String.annotate({ description: "The body of an async function, in JavaScript" }) },
    output: {
      result: Schema.optionalKey(Schema.Unknown).annotate({ description: "The returned value" }),
      log: Schema.optionalKey(Schema.Array(Schema.String)).annotate({ description: "The lines of console.log" })
    }
  })
  return Effect.gen(function*() {
    const sandbox = yield* Sandbox
    const { maxCodeChars, ...fixed } = yield* FixedBounds
    const bounds = {
      computingTimeoutMillis: computingTimeout,
      maxMemoryBytes: Math.max(minMemoryBytes, maxMemoryBytes),
      maxCalls,
      maxResultBytes,
      ...fixed
    }
    const running = new KeyedCounter()
    const maxPerClient = limits.maxPerClient ?? Math.ceil(maxRuns * 0.75)

    /** Runs a program, or refuses it. */
    const bounded = <A, E, R>(request: RequestContext, program: Effect.Effect<A, E, R>) => {
      const client = ClientKey.ofRequest(request)
      return Effect.acquireUseRelease(
        Effect.suspend(() => {
          switch (running.acquire(client, maxRuns, maxPerClient)) {
            case "max":
              return tooManyRuns("maxRuns", `${maxRuns} programs`)
            case "maxPerKey":
              return tooManyRuns("maxPerClient", `${maxPerClient} programs of one client`)
            case undefined:
              return Effect.void
          }
        }),
        () => program,
        () => Effect.sync(() => running.release(client))
      )
    }

    const runProgram = Effect.fnUntraced(function*(code: string, log: Array<string>) {
      if (code.length > maxCodeChars) {
        return yield* limitExceeded("maxCodeChars", `The program exceeds ${maxCodeChars} characters`)
      }
      const request = yield* McpRequest
      const clock = new InputClock()
      const call = callsOf(hidden, request, clock, search)
      const permits = Semaphore.makeUnsafe(maxConcurrentCalls)
      const run = sandbox.run({ code, bounds }, {
        call: (name: string, args: JsonObject) => permits.withPermit(call(name, args)),
        log: (line) => void log.push(line)
      })
      const late = limitExceeded(
        "timeout",
        `The program took longer than ${Duration.format(Duration.millis(timeout))} (timeout)`
      )
      return yield* Effect.raceFirst(run, Effect.andThen(clock.sleep(Duration.millis(timeout)), late))
    })

    yield* HiddenTools.addSearch(hidden, {
      ...options,
      search,
      describe,
      use: `call it in a program with ${execute}, as its signature shows`,
      signature: (tool) => signatureOf(tool, maxSignatureChars)
    })
    yield* Tool.add(executeTool, ({ code }) =>
      Effect.flatMap(McpRequest, (request) => {
        const log: Array<string> = []
        return Effect.match(bounded(request, runProgram(code, log)), {
          onSuccess: (json) =>
            Tool.result({
              structured: {
                ...(json === undefined ? undefined : { result: JSON.parse(json) as unknown }),
                ...(log.length === 0 ? undefined : { log })
              }
            }),
          onFailure: ({ message }) =>
            Tool.result({
              isError: true,
              content: log.length === 0 ? message : `${message}\n\nconsole:\n${log.join("\n")}`
            })
        })
      }))
  })
}
