/**
 * The thread of one program: QuickJS, and the messages between the program and the server. `npm run sandbox-script`
 * bundles it into `src/internal/sandbox/sandboxScript.ts`.
 *
 * The thread ends with the program, and its memory with it, so nothing is disposed of here.
 */
import variant from "@jitl/quickjs-wasmfile-release-sync"
import { parentPort, workerData } from "node:worker_threads"
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant
} from "quickjs-emscripten-core"
import {
  type Outcome,
  type Settled,
  type Start,
  started,
  type ToolCall,
  type Turn
} from "../src/internal/sandbox/messages.ts"
import { prelude } from "./prelude.ts"

const { engine, program: { bounds, code } }: Start = workerData
const port = parentPort!

// The program is the body of a function. Its first line is the second one of the evaluated text.
const linesBefore = 1
const file = "program.js"
const maxMessageChars = 2000

// The initial memory of the engine, and the unit in which it grows.
const engineBytes = 16 * 1024 * 1024
const pageBytes = 65_536

// QuickJS counts what a program allocates without the overhead of small values, which can be several times as large. So the
// memory that it has is bounded, too.
const wasmMemory = new WebAssembly.Memory({
  initial: engineBytes / pageBytes,
  maximum: Math.ceil((engineBytes + bounds.maxMemoryBytes) / pageBytes)
})
let isFull = false
const grow = wasmMemory.grow.bind(wasmMemory)
wasmMemory.grow = (pages) => {
  try {
    return grow(pages)
  } catch (error) {
    isFull = true
    throw error
  }
}

const quickJs = await newQuickJSWASMModuleFromVariant(
  newVariant(variant as unknown as QuickJSSyncVariant, { wasmModule: engine as WebAssembly.Module, wasmMemory })
)
const runtime = quickJs.newRuntime()
runtime.setMemoryLimit(bounds.maxMemoryBytes)
runtime.setMaxStackSize(bounds.maxStackBytes)
const vm: QuickJSContext = runtime.newContext()

let computedMillis = 0
let turnStartedAt = 0
let isInterrupted = false

let outcome: Outcome | undefined
let log: Array<string> = []
let logBytes = 0
let calls: Array<ToolCall> = []
let callCount = 0
let pendingCalls = 0

const encoder = new TextEncoder()
const bytesOf = (text: string): number => encoder.encode(text).length
/** The JSON that the program has passed. */
const jsonOf = (handle: QuickJSHandle | undefined): string | undefined =>
  handle !== undefined && vm.typeof(handle) === "string" ? vm.getString(handle) : undefined
/** The text that the program has passed, as JSON: `getString` cuts a string at its first NUL. */
const stringOf = (handle: QuickJSHandle | undefined): string | undefined => {
  const text: unknown = JSON.parse(jsonOf(handle) ?? "null")
  return typeof text === "string" ? text : undefined
}

const thrown = (message: string, stack = ""): Outcome => {
  // An engine without memory for an error throws null.
  if (message === "InternalError: out of memory" || (isFull && message === "threw null")) {
    return { type: "limit", limit: "maxMemoryBytes" }
  }
  if (/^(Internal|Syntax)Error: stack overflow$/.test(message)) return { type: "limit", limit: "maxStackBytes" }
  const [, line, column] = new RegExp(`${file}:(\\d+)(?::(\\d+))?`).exec(stack) ?? []
  return {
    type: "thrown",
    message: message.length > maxMessageChars ? `${message.slice(0, maxMessageChars)}…` : message,
    line: line === undefined ? undefined : Math.max(1, Number(line) - linesBefore),
    column: column === undefined ? undefined : Number(column)
  }
}

const callFunction = vm.newFunction("call", (name, args) => {
  const [called, json] = [stringOf(name) ?? "", jsonOf(args) ?? "{}"]
  if (callCount >= bounds.maxCalls) throw new Error(`the program may call tools ${bounds.maxCalls} times (maxCalls)`)
  const isLong = (text: string) => text.length > bounds.maxArgumentBytes || bytesOf(text) > bounds.maxArgumentBytes
  if (isLong(json) || called.length > bounds.maxArgumentBytes) {
    throw new Error(`the arguments exceed maxArgumentBytes (${bounds.maxArgumentBytes})`)
  }
  const id = callCount++
  pendingCalls++
  calls.push({ id, name: called, args: json })
  return vm.newNumber(id)
})
const logFunction = vm.newFunction("log", (line) => {
  const left = bounds.maxLogBytes - logBytes
  if (left <= 0) return
  const text = (stringOf(line) ?? "").slice(0, left)
  const bytes = bytesOf(text)
  // A line break for each line.
  logBytes += bytes + 1
  log.push(bytes <= left ? text : "…")
  if (logBytes >= bounds.maxLogBytes) log.push("… (further lines exceed maxLogBytes)")
})
const doneFunction = vm.newFunction("done", (result, problem) => {
  const message = stringOf(problem)
  const json = jsonOf(result)
  if (outcome !== undefined) return
  if (message !== undefined) outcome = { type: "invalidResult", message: message.slice(0, maxMessageChars) }
  else if (json !== undefined && (json.length > bounds.maxResultBytes || bytesOf(json) > bounds.maxResultBytes)) {
    outcome = { type: "limit", limit: "maxResultBytes" }
  } else outcome = { type: "returned", json }
})
const failedFunction = vm.newFunction("failed", (message, stack) => {
  outcome ??= thrown(stringOf(message) ?? "the program failed", stringOf(stack))
})

const { fail, settle, watch } = (() => {
  const make = vm.unwrapResult(vm.evalCode(prelude, "prelude.js"))
  const made = vm.unwrapResult(
    vm.callFunction(make, vm.undefined, callFunction, logFunction, doneFunction, failedFunction)
  )
  return { fail: vm.getProp(made, "fail"), settle: vm.getProp(made, "settle"), watch: vm.getProp(made, "watch") }
})()

/** Reports an error that no promise of the program has. */
const report = (error: QuickJSHandle): void => {
  const reported = vm.callFunction(fail, vm.undefined, error)
  if (reported.error) outcome ??= { type: "limit", limit: "maxMemoryBytes" }
}

/** Runs a part of the program and everything that follows from it, and reports the turn. */
const turn = (work: () => void): void => {
  turnStartedAt = performance.now()
  try {
    work()
    while (outcome === undefined && runtime.hasPendingJob()) {
      const jobs = runtime.executePendingJobs(1000)
      if (jobs.error) report(jobs.error)
    }
  } catch (error) {
    // The stack of the thread, or an engine that ran out of memory where it cannot say so.
    outcome = { type: "limit", limit: error instanceof RangeError ? "maxStackBytes" : "maxMemoryBytes" }
  }
  computedMillis += performance.now() - turnStartedAt
  if (isInterrupted) outcome = { type: "limit", limit: "computingTimeout" }
  else if (outcome === undefined && pendingCalls === 0) outcome = { type: "neverSettles" }
  const message: Turn = { log, calls, computedMillis, outcome }
  log = []
  calls = []
  port.postMessage(message)
}

port.on("message", ({ id, succeeded, text }: Settled) => {
  if (outcome !== undefined) return
  pendingCalls--
  turn(() => {
    const settled = vm.callFunction(
      settle,
      vm.undefined,
      vm.newNumber(id),
      succeeded ? vm.true : vm.false,
      vm.newString(succeeded ? text : JSON.stringify(text))
    )
    if (settled.error) report(settled.error)
  })
})

// From now on the program computes.
runtime.setInterruptHandler(() => {
  isInterrupted ||= computedMillis + performance.now() - turnStartedAt > bounds.computingTimeoutMillis
  return isInterrupted
})
port.postMessage(started)
turn(() => {
  const program = vm.evalCode(`(async () => { "use strict";\n${code}\n})()`, file)
  if (program.error) return report(program.error)
  const watched = vm.callFunction(watch, vm.undefined, program.value)
  if (watched.error) report(watched.error)
})
