import { assert, describe, it, vi } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import pino from "pino"
import { levels, type Logger, loggersOf, type LogLevel, refuseStdout } from "../../src/internal/base/logger.ts"

/** Runs an effect with a logger. */
const logTo = (logger: Logger, effect: Effect.Effect<void>, level: LogLevel = "info"): void =>
  Effect.runSync(
    effect.pipe(
      Effect.provideService(References.CurrentLoggers, loggersOf(logger)),
      Effect.provideService(References.MinimumLogLevel, levels[level])
    )
  )

/** A logger of pino that writes into an array, and the parsed lines. */
const toArray = (options: { readonly level?: string } = {}) => {
  const lines: Array<Record<string, any>> = []
  const logger = pino({ base: null, timestamp: false, ...options }, {
    write: (line: string) => void lines.push(JSON.parse(line))
  })
  return { lines, logger }
}

/**
 * A logger with the signature of winston: the message, and then an object with the fields. It writes the JSON of the entry,
 * as winston's format `json` does.
 */
const winstonLike = () => {
  const lines: Array<Record<string, any>> = []
  const write = (level: string) => (message: string, ...meta: ReadonlyArray<any>) => {
    assert.strictEqual(meta.length, 1)
    lines.push(JSON.parse(JSON.stringify({ ...meta[0], level, message })))
  }
  const logger: Logger = { error: write("error"), warn: write("warn"), info: write("info"), debug: write("debug") }
  return { lines, logger }
}

const all = Effect.all([
  Effect.logFatal("fatal"),
  Effect.logError("error"),
  Effect.logWarning("warning"),
  Effect.logInfo("info"),
  Effect.logDebug("debug"),
  Effect.logTrace("trace")
], { discard: true })

describe("logger", () => {
  it("calls a logger of pino with the fields and then the message", () => {
    const { lines, logger } = toArray()
    logTo(logger, Effect.annotateLogs(Effect.logInfo("an order", { tea: "sencha" }), { request: 7 }))
    assert.deepEqual(lines, [{ level: 30, request: 7, tea: "sencha", msg: "an order" }])
  })

  it("calls a child of a logger of pino in the same way", () => {
    const { lines, logger } = toArray()
    logTo(logger.child({ server: "shop" }), Effect.logInfo("an order", { tea: "sencha" }))
    assert.deepEqual(lines, [{ level: 30, server: "shop", tea: "sencha", msg: "an order" }])
  })

  it("calls any other logger with the message and then the fields", () => {
    const { lines, logger } = winstonLike()
    logTo(logger, Effect.logInfo("an order", { tea: "sencha" }))
    assert.deepEqual(lines, [{ level: "info", message: "an order", tea: "sencha" }])
  })

  it("maps levels to the methods of the logger", () => {
    const { lines, logger } = winstonLike()
    logTo(logger, all, "debug")
    assert.deepEqual(lines.map(({ level, message }) => [level, message]), [
      ["error", "fatal"],
      ["error", "error"],
      ["warn", "warning"],
      ["info", "info"],
      ["debug", "debug"]
    ])
  })

  it("leaves the choice of the level to a logger of pino that is stricter", () => {
    const { lines, logger } = toArray({ level: "warn" })
    logTo(logger, all, "debug")
    assert.deepEqual(lines.map(({ level }) => level), [50, 50, 40])
  })

  it("writes warnings and debug events to info of a logger that has only info and error", () => {
    const seen: Array<readonly [string, string]> = []
    const info = (message: string) => seen.push(["info", message])
    const error = (message: string) => seen.push(["error", message])
    logTo({ info, error }, all, "debug")
    assert.deepEqual(seen, [
      ["error", "fatal"],
      ["error", "error"],
      ["info", "warning"],
      ["info", "info"],
      ["info", "debug"]
    ])
  })

  it("writes no event below the level", () => {
    const { lines, logger } = winstonLike()
    logTo(logger, all, "error")
    assert.deepEqual(lines.map(({ message }) => message), ["fatal", "error"])
  })

  it("keeps the methods of a logger bound to it", () => {
    class Own implements Logger {
      readonly seen: Array<string> = []
      info(message: string) {
        this.seen.push(message)
      }
      error(message: string) {
        this.seen.push(message)
      }
    }
    const logger = new Own()
    logTo(logger, Effect.logInfo("bound"))
    assert.deepEqual(logger.seen, ["bound"])
  })

  it("has the error of a cause, a defect or a logged error in the field err", () => {
    const { lines, logger } = toArray()
    const json = winstonLike()
    const error = Object.assign(new RangeError("too much tea"), { grams: 9 })
    for (const log of [Effect.logError("failed", Cause.die(error)), Effect.logError("failed", error)]) {
      logTo(logger, log)
      logTo(json.logger, log)
    }
    for (const line of [...lines, ...json.lines]) {
      assert.strictEqual(line["msg"] ?? line["message"], "failed")
      assert.strictEqual(line["err"].message, "too much tea")
      assert.strictEqual(line["err"].name, "RangeError")
      assert.strictEqual(line["err"].grams, 9)
      assert.match(line["err"].stack, /^RangeError: too much tea\n +at /)
    }
    assert.deepEqual(Object.keys(error), ["grams"])
  })

  it("has further errors, other objects and spans in fields of their own", () => {
    const { lines, logger } = winstonLike()
    const failures = Cause.combine(Cause.fail(new Error("one")), Cause.fail(new Error("two")))
    logTo(logger, Effect.withLogSpan(Effect.logError("failed", "twice", [1, 2], failures), "brew"))
    const [{ err, errors, message, spans, values }] = lines as [Record<string, any>]
    assert.strictEqual(message, "failed twice")
    assert.deepEqual(values, [[1, 2]])
    assert.deepEqual([err.message, errors.map((error: Error) => error.message)], ["one", ["two"]])
    assert.deepEqual(Object.keys(spans), ["brew"])
  })

  it("writes an event to the console, with the error, if the logger throws", () => {
    const info = () => {
      throw new Error("write after end")
    }
    const written = vi.spyOn(console, "log").mockImplementation(() => {})
    logTo({ info, error: () => {} }, Effect.logInfo("not lost"))
    const lines = written.mock.calls.flat().map(String).join("\n")
    written.mockRestore()
    assert.include(lines, "not lost")
    assert.include(lines, "write after end")
  })

  it("rejects an object without the methods", () => {
    assert.throws(
      () => loggersOf({ info: () => {} } as unknown as Logger),
      /the option logger must have the methods info/
    )
    assert.throws(() => loggersOf(null as unknown as Logger), /the option logger must have the methods info/)
  })

  it("accepts console, a logger of pino and its child as a Logger", () => {
    const loggers: ReadonlyArray<Logger> = [console, pino({ enabled: false }), pino({ enabled: false }).child({})]
    for (const logger of loggers) assert.strictEqual(loggersOf(logger).size, 2)
    // @ts-expect-error: it has no method error
    const incomplete: Logger = { info: () => {} }
    assert.isDefined(incomplete)
  })

  it("refuses a logger of pino that writes to stdout, on stdio", () => {
    assert.throws(() => refuseStdout(pino()), /^the logger writes to stdout, .*: use pino\(pino\.destination\(2\)\)$/)
    assert.throws(() => refuseStdout(pino().child({ server: "shop" })), /^the logger writes to stdout/)
    for (const logger of [pino(pino.destination(2)), toArray().logger, console]) refuseStdout(logger)
  })
})
