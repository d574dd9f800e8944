import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { history, program } from "./generate.ts"
import { problems } from "./compareWithModel.ts"

/** `RUNS` and `SEED` let it run longer, and elsewhere. */
const runs = Number(process.env["RUNS"] ?? 40)
const seed = process.env["SEED"] ?? "skein"

it.effect.prop(
  "whatever a body is made of, and whatever happens to its processes: it ends as if nothing had happened",
  [program, history],
  ([program, history]) =>
    Effect.flatMap(
      problems(program, history),
      (problems) => problems.length === 0 ? Effect.void : Effect.die(new Error(problems.join("\n")))
    ),
  { timeout: runs * 5000, arbitrary: { runs, seed, size: 30, maxShrinks: 300 } }
)
