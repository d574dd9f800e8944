// #region menu
import { resource, tool } from "skein"
import { z } from "zod"

const teas = ["assam", "sencha"]
const input = z.object({ tea: z.string() })

export const add = tool("add", { description: "Adds a tea to the menu.", input }, ({ tea }) => {
  teas.push(tea)
  return `${tea} is on the menu`
})

export const menu = resource("shop://menu", { title: "The menu", mimeType: "text/plain" }, () => teas.join("\n"))
// #endregion
