// #region menu
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const teas = ["assam", "sencha"]

export const Add = Tool.layer(
  Tool.make("add", { description: "Adds a tea to the menu.", input: { tea: Schema.String } }),
  ({ tea }) => Effect.as(Effect.sync(() => teas.push(tea)), `${tea} is on the menu`)
)

export const Menu = Resource.layer(
  Resource.make("shop://menu", { title: "The menu", mimeType: "text/plain" }),
  Effect.sync(() => teas.join("\n"))
)
// #endregion
