/** Looks at a page as it is rendered: has every control a name, can every text be read. */

import type { Page } from 'playwright-core';

/** Controls that are shown and have no name, as markup. */
export async function unnamedControls(page: Page): Promise<readonly string[]> {
  const controls = page.locator(
    ':is(button, a, input, select, textarea, summary, dialog, [role="img"], [tabindex="0"]):visible',
  );
  const found: string[] = [];
  for (const control of await controls.all()) {
    const [first = ''] = (await control.ariaSnapshot()).split('\n');
    // Such as `- button "Hold read of sandbox"`, or `- textbox "Reason": text`
    const isNamed = /^- '?(\w+ "[^"]+"|text: .+|\w+: .+)/.test(first);
    if (!isNamed) found.push(`${first} ${await control.evaluate((one) => one.outerHTML.slice(0, 200))}`);
  }
  return found;
}

/** Texts whose contrast with what they stand on is below what WCAG 2.2, 1.4.3 (AA) asks for. */
export const lowContrastTexts = (page: Page): Promise<readonly string[]> =>
  page.evaluate(() => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const brush = canvas.getContext('2d', { willReadFrequently: true });
    if (!brush) throw new Error('no canvas');

    /** What the colours look like, one over the other. */
    function mixed(colours: readonly string[]): readonly number[] {
      if (!brush) return [];
      brush.clearRect(0, 0, 1, 1);
      for (const colour of colours) {
        brush.fillStyle = colour;
        brush.fillRect(0, 0, 1, 1);
      }
      return [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }
    /** WCAG 2.2, relative luminance. */
    const luminance = (colour: readonly number[]) => {
      const [red = 0, green = 0, blue = 0] = colour.map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const groundsOf = (element: Element | null): readonly string[] =>
      element ? [...groundsOf(element.parentElement), getComputedStyle(element).backgroundColor] : ['Canvas'];

    const modal = document.querySelector('dialog[open]');
    return [...(modal ?? document.body).querySelectorAll('*')].flatMap((element) => {
      const own = [...element.childNodes].some(
        (node) => node.nodeType === Node.TEXT_NODE && node.nodeValue?.trim(),
      );
      const isRead =
        own && element.checkVisibility() && !element.closest('.unseen, .skip, option, script, style');
      if (!isRead) return [];
      const grounds = groundsOf(element);
      const [one = 0, other = 0] = [
        luminance(mixed(grounds)),
        luminance(mixed([...grounds, getComputedStyle(element).color])),
      ].toSorted((a, b) => b - a);
      const ratio = (one + 0.05) / (other + 0.05);
      return ratio < 4.5
        ? [`${ratio.toFixed(2)}: ${element.className} ${element.textContent?.slice(0, 60)}`]
        : [];
    });
  });
