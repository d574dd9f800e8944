/** Runs a program as a durable handler. It returns a text with the end of each of its parts. */
import { McpRequest } from "@skein/runtime/RequestContext"
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import type * as generate from "./generate.ts"
import type { Life } from "./world.ts"

/** The failure of a part. */
export class Failed extends Schema.TaggedError<Failed>()("Failed", { message: Schema.String }) {}

type Body<E = never> = Effect.Effect<string, E, CurrentTask | McpRequest>

/** The handler of a program, in one process. */
export const interpret = ({ end, parts }: generate.Program, life: Life, sql: SqlClient): Body<Failed> =>
  Effect.suspend(() => {
    let reported = 0

    const turns = (count: number) => Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow)
    /** A killed process does not delay the next one. */
    const lasts = (seconds: number) =>
      seconds === 0 ? Effect.void : Effect.raceFirst(Effect.sleep(seconds * 1000), life.died.await)

    const act = (name: string, key: string, step: generate.Step, good: (ended: number) => boolean, pause = 0) =>
      Effect.gen(function*() {
        life.begins(name, key, yield* Clock.currentTimeMillis, pause)
        yield* turns(step.turns)
        yield* lasts(step.seconds)
        if (step.transactional) yield* Effect.orDie(sql`INSERT INTO ledger VALUES (${name}, ${key})`)
        yield* turns(step.turns)
        const now = yield* Clock.currentTimeMillis
        const well = good(life.ended(name))
        life.ends(name, well, now)
        return well
      })

    const undo = (name: string, step: generate.Step, reason: string) =>
      Effect.gen(function*() {
        life.beginsToUndo(reason)
        if (step.undoing === "slow") yield* Step.sleep(`breath ${name}`, 7000)
        yield* Step.run(`undo ${name}`, { transactional: step.transactional }, (key) =>
          Effect.suspend(() => {
            life.undoes(name)
            return act(`undo ${name}`, key, { ...step, seconds: Math.min(step.seconds, 1) }, () => true)
          }))
        if (step.undoing === "fails") return yield* new Failed({ message: "It cannot be undone" })
      })

    const step = (name: string, part: generate.Step): Body<Failed> => {
      const { ends, pause, transactional, tries } = part
      const good = (ended: number) => ends === "well" || (ends === "late" && ended >= tries)
      const retry = Schedule.upTo(Schedule.spaced(pause * 1000), { times: tries })
      const executed = Step.run(
        name,
        { success: Schema.String, error: Failed, transactional, retry },
        (key) =>
          Effect.flatMap(act(name, key, part, good, pause), (well): Effect.Effect<string, Failed> => {
            if (well) return Effect.succeed(`${name} by try ${life.ended(name)}`)
            return ends === "dies" ? Effect.die(new Error(`${name} dies`)) : Effect.fail(new Failed({ message: name }))
          })
      )
      const registered = Effect.sync(() => life.registers(name))
      const value = part.undo === "after"
        ? Effect.tap(executed.pipe(Step.withCompensation((_, reason) => undo(name, part, reason))), () => registered)
        : part.undo === "before"
        ? Effect.andThen(Effect.andThen(Step.compensate((reason) => undo(name, part, reason)), registered), executed)
        : executed
      return Effect.map(value, (value) => {
        life.saw(name, value)
        return "done"
      })
    }

    const sleep = (name: string, seconds: number): Body =>
      Effect.gen(function*() {
        life.sleeps(name, yield* Clock.currentTimeMillis)
        yield* Step.sleep(name, seconds * 1000)
        life.wakes(name, yield* Clock.currentTimeMillis, seconds)
        return "slept"
      })

    const ask = (name: string, { key, timeout }: generate.Ask): Body => {
      const form = Elicitation.form(name, { text: Schema.String }, {
        ...(key ? { key: `key ${name}` } : undefined),
        ...(timeout === undefined ? undefined : { timeout: timeout * 1000 })
      })
      const asked = Effect.map(form, (answer) => answer.action === "accept" ? answer.content.text : answer.action)
      return Effect.catch(
        asked,
        (error: InputError) => error.reason._tag === "Timeout" ? Effect.succeed("late") : Effect.die(error)
      )
    }

    const one = (name: string, part: generate.Part): Body<Failed> => {
      switch (part._tag) {
        case "Step":
          return step(name, part)
        case "Sleep":
          return sleep(name, part.seconds)
        case "Ask":
          return ask(name, part)
        case "Race":
          return part.first === "ask"
            ? Effect.raceFirst(ask(name, part.ask), sleep(name, part.seconds))
            : Effect.raceFirst(sleep(name, part.seconds), ask(name, part.ask))
        case "Tie": {
          const branch = (index: 0 | 1) =>
            Step.run(`${name}/${index}`, { success: Schema.String }, () =>
              Effect.gen(function*() {
                yield* turns(part.turns[index])
                yield* lasts(part.seconds[index])
                yield* turns(part.turns[index])
                return `${index}`
              }))
          return Effect.gen(function*() {
            const winner = yield* Effect.raceFirst(branch(0), branch(1))
            // Each run sees the same winner.
            life.saw(`${name} won`, winner)
            yield* sleep(`${name} after`, 6)
            return `won by ${winner}`
          })
        }
        case "All": {
          const { concurrency, parts } = part
          const branches = parts.map((parts, index) => sequence(`${name}/${index}`, parts))
          return Effect.map(Effect.all(branches, { concurrency }), (values) => `[${values.join(" | ")}]`)
        }
        case "Catch":
          return Effect.catch(sequence(name, part.parts), ({ message }) => Effect.succeed(`caught ${message}`))
        case "Section":
          return Task.nonCancellable(name, sequence(name, part.parts))
        case "Say":
          return Effect.gen(function*() {
            yield* Task.setStatusMessage(name)
            yield* (yield* McpRequest).progress({ progress: ++reported })
            return "reported"
          })
        case "Fail":
          return Effect.fail(new Failed({ message: name }))
      }
    }

    const seen = (name: string, part: generate.Part) =>
      Effect.map(one(name, part), (value) => {
        if (part._tag !== "Step") life.saw(name, value)
        return value
      })

    const sequence = (name: string, parts: ReadonlyArray<generate.Part>): Body<Failed> =>
      Effect.map(
        Effect.forEach(parts, (part, index) => seen(`${name}.${index}`, part)),
        (values) => values.join(", ")
      )

    return Effect.flatMap(sequence("p", parts), (value): Effect.Effect<string, Failed> => {
      if (end === "defect") return Effect.die(new Error("The end is a defect"))
      return end === "value" ? Effect.succeed(value) : Effect.fail(new Failed({ message: "The end" }))
    })
  })
