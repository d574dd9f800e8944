/** Access to the elements of the page. */

/** Returns the element with an id. Throws if it does not exist or has another class. */
export const byId = <E extends HTMLElement>(id: string, kind: abstract new() => E): E => {
  const element = document.getElementById(id)
  if (element instanceof kind) return element
  throw new Error(`the page has no ${kind.name} with the id "${id}"`)
}

/** Sets the text of an element. The text comes from a server, so it is never parsed as HTML. */
export const setText = (id: string, text: string): void => {
  byId(id, HTMLElement).textContent = text
}
