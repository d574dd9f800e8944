// #region tool
import * as Tool from "@skein/server/Tool"
import * as z from "zod"

const brew = Tool.make("brew", {
  description: "Brews a pot of tea.",
  input: z.object({ tea: z.string(), cups: z.number().int().min(1).default(1) })
})

export default Tool.async(brew, async ({ cups, tea }) => `${cups} of ${tea}`)
// #endregion
