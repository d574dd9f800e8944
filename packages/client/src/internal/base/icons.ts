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

/** A listed item, a content block, or a message with a content block. */
interface Item extends Bearer {
  readonly content?: Bearer | undefined
}

const safe = /^(?:https:\/\/|data:image\/)/i

// How many characters of an address are logged. They include the scheme; the whole may be long.
const quoted = 24

const isSafe = ({ src }: Icon): boolean => safe.test(src)

const hasSafeIcons = ({ icons }: Bearer): boolean => icons === undefined || icons.every(isSafe)

const isSafeItem = (item: Item): boolean =>
  hasSafeIcons(item) && (item.content === undefined || hasSafeIcons(item.content))

/** The object without unsafe icons, or the object itself if it has none. Adds their addresses to `left`. */
export const safely = <A extends Bearer>(thing: A, left: Array<string> = []): A => {
  const { icons } = thing
  if (icons === undefined || hasSafeIcons(thing)) return thing
  const kept = icons.filter((icon) => isSafe(icon) || (left.push(icon.src), false))
  const { icons: _, ...rest } = thing
  return (kept.length === 0 ? rest : { ...rest, icons: kept }) as A
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
export const withSafeIcons = <R>(
  method: string,
  result: R,
  client?: { readonly warn: (message: string) => void }
): R => {
  const member = members.get(method)
  if (member === undefined) return result
  const items = (result as Readonly<Record<string, ReadonlyArray<Item>>>)[member]!
  if (items.every(isSafeItem)) return result
  const left: Array<string> = []
  const kept = items.map((item) => {
    const own = safely(item, left)
    return own.content === undefined ? own : { ...own, content: safely(own.content, left) }
  })
  const some = left.slice(0, 4).map((src) => printable(src, quoted)).join(", ")
  client?.warn(`${method}: ${left.length} icons that are neither https: nor images in data: were left out: ${some}`)
  return { ...result, [member]: kept }
}
