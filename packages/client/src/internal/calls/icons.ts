/**
 * Removes icons with an unsafe address from results.
 *
 * "Ensure that the icon URI is either a HTTPS or `data:` URI. Clients MUST reject icon URIs that use unsafe schemes"
 * (2025-11-25 and 2026-07-28, basic, icons). So `http:` is removed as well, although a server may send such an address,
 * and so is a `data:` URI that is not an image.
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import * as Method from "@skein/protocol/Method"
import { printable } from "@skein/protocol/Text"

/** An object that may have icons. */
interface Bearer {
  readonly icons?: ReadonlyArray<Icon> | undefined
}

const safe = /^(?:https:\/\/|data:image\/)/i

// How many characters of an address are logged. They include the scheme; the whole may be long.
const quoted = 24

/** The object without unsafe icons, or the object itself if it has none. Adds their addresses to `left`. */
export const safely = <A extends Bearer>(thing: A, left: Array<string> = []): A => {
  const { icons } = thing
  if (icons === undefined || icons.every(({ src }) => safe.test(src))) return thing
  const kept = icons.filter(({ src }) => safe.test(src) || (left.push(src), false))
  const { icons: _, ...rest } = thing
  return (kept.length === 0 ? rest : { ...rest, icons: kept }) as A
}

/** The items as `change` returns them; the same array if no item changes. */
const each = <A>(items: ReadonlyArray<A>, change: (item: A) => A): ReadonlyArray<A> => {
  let changed: Array<A> | undefined
  for (let at = 0; at < items.length; at++) {
    const item = change(items[at]!)
    if (item !== items[at]) (changed ??= [...items])[at] = item
  }
  return changed ?? items
}

/** The message without unsafe icons in its link, or the message itself if it has none. */
const safelySaid = (message: Said, left: Array<string>): Said => {
  const content = safely(message.content, left)
  return content === message.content ? message : { ...message, content }
}

interface Said {
  readonly content: Bearer
}

/** The member of a result that may have icons, by method. */
const members: ReadonlyMap<string, string> = new Map([
  [Method.ListTools.name, "tools"],
  [Method.ListResources.name, "resources"],
  [Method.ListResourceTemplates.name, "resourceTemplates"],
  [Method.ListPrompts.name, "prompts"],
  [Method.CallTool.name, "content"],
  [Method.GetPrompt.name, "messages"]
])

/**
 * The result of a method without unsafe icons in listed items and in links to resources, or the result itself if it has
 * none. Calls `warn` once for all of them.
 */
export const withSafeIcons = <R>(method: string, result: R, warn?: (message: string) => void): R => {
  const member = members.get(method)
  if (member === undefined) return result
  const left: Array<string> = []
  const items = (result as Readonly<Record<string, ReadonlyArray<unknown>>>)[member]!
  const kept = member === "messages"
    ? each(items as ReadonlyArray<Said>, (message) => safelySaid(message, left))
    : each(items as ReadonlyArray<Bearer>, (item) => safely(item, left))
  if (kept === items) return result
  const some = left.slice(0, 4).map((src) => printable(src, quoted)).join(", ")
  warn?.(`${method}: ${left.length} icons that are neither https: nor images in data: were left out: ${some}`)
  return { ...result, [member]: kept }
}
