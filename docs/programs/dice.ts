// #region dice
import { AsyncServer } from "skein"
import { z } from "zod"

const sides = z.int().min(2).max(100).describe("How many sides the die has")

new AsyncServer({ name: "dice", version: "1.0.0" })
  .tool(
    "roll",
    { description: "Rolls a die.", input: z.object({ sides }), output: z.object({ rolled: z.int() }) },
    ({ sides }) => ({ rolled: 1 + Math.floor(Math.random() * sides) })
  )
  .runStdio()
// #endregion
