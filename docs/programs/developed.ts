// #region server
import { AsyncServer } from "skein"
import { z } from "zod"

export const TeaHouse = new AsyncServer({ name: "tea-house", version: "1.0.0" }).tool(
  "brew",
  { description: "Brews a pot of tea.", input: z.object({ tea: z.string() }) },
  ({ tea }) => `A pot of ${tea}`
)
// #endregion
