// #region tool
import { tool } from "skein"
import { z } from "zod"

const input = z.object({ tea: z.string(), cups: z.int().min(1).default(1) })

export default tool("brew", { description: "Brews a pot of tea.", input }, async ({ cups, tea }) => `${cups} of ${tea}`)
// #endregion
