/** Runs a random program in a random history, and compares the result with the model. */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { check } from "./check.ts"
import { drive } from "./drive.ts"
import type { Event, Program } from "./generate.ts"
import { World } from "./world.ts"

/** Log lines that are expected: defects of the program, and failed compensations. */
const meant = /: defect |a compensation failed/

/** The problems of a program in a history; none if the test passes. */
export const problems = (program: Program, history: ReadonlyArray<Event>) => {
  const world = new World()
  const logger = Logger.make(({ logLevel, message }) => {
    if (logLevel !== "Error" && logLevel !== "Warn" && logLevel !== "Fatal") return
    const text = (Array.isArray(message) ? message : [message]).map(String).join(" ")
    if (!meant.test(text)) world.problems.push(`The log says ${text}`)
  })
  return drive(program, history, world).pipe(
    Effect.map((past) => check(program, world, past)),
    Effect.provide(Logger.layer([logger]))
  )
}
