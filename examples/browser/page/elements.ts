/** The elements of the page. */

/** The element with an id, which is of that kind. */
export const byId = <E extends HTMLElement>(id: string, kind: abstract new() => E): E => {
  const element = document.getElementById(id)
  if (element instanceof kind) return element
  throw new Error(`The page has no ${kind.name} ${id}`)
}

/** Writes a text where the page has a place for it. It is never taken for HTML: it comes from a server. */
export const say = (id: string, text: string): void => {
  byId(id, HTMLElement).textContent = text
}
