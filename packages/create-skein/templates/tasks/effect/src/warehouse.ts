/** Stand-ins for the services that carry out an order. Replace them. */

/** Reserves goods, and returns the number of the reservation. A repeated call with the same key reserves nothing more. */
export const reserve = async (item: string, quantity: number, key: string): Promise<string> => {
  console.error(`reserve ${quantity} of ${item} (${key})`)
  return key.slice(0, 8)
}

/** Undoes a reservation. */
export const release = async (reservation: string): Promise<void> => {
  console.error(`release ${reservation}`)
}

/** Ships reserved goods, and returns the number of the parcel. */
export const ship = async (reservation: string, address: string): Promise<string> => {
  console.error(`ship ${reservation} to ${address}`)
  return `parcel-${reservation}`
}
