/**
 * The fibers of this process and the lines at which they wait, for a report about a process that does not go on.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { ChildProcess } from "node:child_process"
import { type Debugger, type Runtime, Session } from "node:inspector"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"

/** The class of fibers, which Effect does not export. */
export const FiberClass = (() => {
  const fiber = Effect.runFork(Effect.never)
  Effect.runFork(Fiber.interrupt(fiber))
  return fiber.constructor
})()

/** The members of a fiber that the report reads. */
interface FiberState {
  readonly id: number
  readonly interruptible: boolean
  readonly _exit: unknown
  readonly _interruptedCause: unknown
  readonly _stack: ReadonlyArray<object>
}

/** The most lines of code per fiber, from the one at which it waits outwards. */
const maxLines = 12

/** Returns a fiber's functions and generators, the innermost first: their positions are the lines at which it waits. */
const codeOf = (fiber: FiberState): ReadonlyArray<object> =>
  fiber._stack.toReversed().flatMap((frame) =>
    Reflect.ownKeys(frame)
      .map((key): unknown => Reflect.get(frame, key))
      .filter((value): value is object =>
        typeof value === "function" ||
        (typeof value === "object" && value !== null && Object.prototype.toString.call(value) === "[object Generator]")
      )
  )

/**
 * Describes all fibers that have not ended: each with the lines of the code that it continues with. Fibers at the same
 * lines are counted together. The inspector knows the lines of functions and of suspended generators.
 */
export const describeFibers = (): string => {
  const session = new Session()
  session.connect()
  try {
    const files = new Map<string, string>()
    session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => files.set(scriptId, url))
    const post = <A>(method: string, params: object = {}): A => {
      let answer: A | undefined
      // Within one thread the inspector answers before `post` returns.
      session.post(method, params, (error: Error | null, result?: object) => {
        if (error !== null) throw new Error(`${method}: ${JSON.stringify(error)}`)
        answer = result as A
      })
      return answer!
    }
    post("Debugger.enable")
    const share = globalThis as { fibersToDescribe?: unknown }
    const reference = (value: unknown): string => {
      share.fibersToDescribe = value
      const { result } = post<Runtime.EvaluateReturnType>("Runtime.evaluate", {
        expression: "globalThis.fibersToDescribe"
      })
      return result.objectId!
    }
    const { objects } = post<Runtime.QueryObjectsReturnType>("Runtime.queryObjects", {
      prototypeObjectId: reference(FiberClass.prototype)
    })
    const found: Array<FiberState> = []
    share.fibersToDescribe = found
    post("Runtime.callFunctionOn", {
      objectId: objects.objectId,
      functionDeclaration: "function() { globalThis.fibersToDescribe.push(...this) }"
    })

    const where = (value: object): string | undefined => {
      const { internalProperties = [] } = post<Runtime.GetPropertiesReturnType>("Runtime.getProperties", {
        objectId: reference(value),
        ownProperties: true
      })
      const place = internalProperties.find(({ name }) =>
        name === "[[GeneratorLocation]]" || name === "[[FunctionLocation]]"
      )?.value?.value as Debugger.Location | undefined
      if (place === undefined) return undefined
      const url = files.get(place.scriptId) ?? place.scriptId
      return `${url.startsWith("file:") ? fileURLToPath(url) : url}:${place.lineNumber + 1}`
    }
    const counts = new Map<string, number>()
    for (const fiber of found.filter(({ _exit }) => _exit === undefined)) {
      const lines = codeOf(fiber).flatMap((code) => where(code) ?? [])
        .filter((line) => !line.includes("/effect/dist/internal/")).slice(0, maxLines)
      const flags = [
        fiber.interruptible ? "" : " uninterruptible",
        fiber._interruptedCause === undefined ? "" : " interrupted"
      ].join("")
      const text = [`fiber${flags}`, ...lines.map((line) => `    ${line}`)].join("\n")
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
    delete share.fibersToDescribe
    return [...counts].map(([text, count]) => `${count} × ${text}`).join("\n")
  } finally {
    session.disconnect()
  }
}

const endOfFibers = (pid: number | undefined): string => `end of the fibers of ${pid}`

/** Writes the fibers of this process to stderr at each SIGUSR2, and a line after them. */
export const describeFibersOnSignal = (): void => {
  process.on(
    "SIGUSR2",
    () => process.stderr.write(`fibers of ${process.pid}:\n${describeFibers()}\n${endOfFibers(process.pid)}\n`)
  )
}

/** Milliseconds in which a process writes its fibers. A busy one takes long to notice the signal. */
const describeMillis = 30_000

/**
 * Asks a process for its fibers (`describeFibersOnSignal`), and waits until it has written all of them or has ended.
 * `stderr` returns what it has written.
 */
export const requestFibers = async (child: ChildProcess, stderr: () => string): Promise<void> => {
  child.kill("SIGUSR2")
  const end = performance.now() + describeMillis
  const isDone = () => child.exitCode !== null || child.signalCode !== null || stderr().includes(endOfFibers(child.pid))
  while (performance.now() < end && !isDone()) await sleep(50)
}
