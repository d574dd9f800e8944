import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { history, program } from "./generate.ts"
import { problems } from "./compareWithModel.ts"

/** `RUNS` and `SEED` make it run longer, and with other programs. */
const runs = Number(process.env["RUNS"] ?? 40)
const seed = process.env["SEED"] ?? "skein"

it.effect.prop(
  "a random handler ends with its undisturbed result after any history of its processes",
  [program, history],
  ([program, history]) =>
    Effect.flatMap(
      problems(program, history),
      (problems) => problems.length === 0 ? Effect.void : Effect.die(new Error(problems.join("\n")))
    ),
  { timeout: runs * 5000, arbitrary: { runs, seed, size: 30, maxShrinks: 300 } }
)
