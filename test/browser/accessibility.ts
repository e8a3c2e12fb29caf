/** Accessibility checks on the rendered page: the rules of axe-core, text contrast, and visible focus. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { within } from '../kit/within.ts';

const axeCore = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/**
 * @returns the violations of all rules of axe-core, best practices included, each with the first elements.
 *   The DevTools protocol runs the script: the content security policy of the page forbids every other way.
 * @param selector of the element to check; the whole page takes several times as long as a dialog
 */
export async function axeViolations(page: Page, selector = 'html'): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: axeCore });
  const evaluation = session.send('Runtime.evaluate', {
    expression: `axe.run(${JSON.stringify(selector)}, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, help, nodes }) =>
      id + ': ' + help + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' ')))`,
    awaitPromise: true,
    returnByValue: true,
  });
  const { result, exceptionDetails } = await within(90_000, 'axe-core', evaluation);
  await session.detach();
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
}

/**
 * Presses Tab until this element has the focus. Fails at a stop whose focus is not visible. Requires `reducedMotion`: otherwise
 * the page scrolls to the focus slowly.
 */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  const maxStops = 300;
  for (let stops = 0; stops < maxStops; stops++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
    const hidden = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return undefined;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const { left, top, width, height } = element.getBoundingClientRect();
      const hit = document.elementFromPoint(left + width / 2, top + height / 2);
      const isOutlined = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2;
      const isInView = hit !== null && (element.contains(hit) || hit.contains(element));
      return isOutlined && isInView ? undefined : element.outerHTML.slice(0, 200);
    });
    if (hidden) throw new Error(`the focus is not visible on ${hidden}`);
  }
  throw new Error(`no stop of the Tab key is ${target}`);
}

/** @returns the texts whose contrast with their background is below 4.5 to 1 (WCAG 2.2, 1.4.3, AA) */
export const lowContrastTexts = (page: Page): Promise<readonly string[]> =>
  page.evaluate(() => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) throw new Error('no canvas');

    /** The colour that results when each is painted over the one before. */
    function blend(colours: readonly string[]): readonly number[] {
      if (!context) return [];
      context.clearRect(0, 0, 1, 1);
      for (const colour of colours) {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
      }
      return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }
    /** WCAG 2.2, relative luminance. */
    const luminance = (colour: readonly number[]) => {
      const [red = 0, green = 0, blue = 0] = colour.map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const backgroundsOf = (element: Element | null): readonly string[] =>
      element
        ? [...backgroundsOf(element.parentElement), getComputedStyle(element).backgroundColor]
        : ['Canvas'];

    const modal = document.querySelector('dialog[open]');
    return [...(modal ?? document.body).querySelectorAll('*')].flatMap((element) => {
      const hasText = [...element.childNodes].some(
        (node) => node.nodeType === Node.TEXT_NODE && node.nodeValue?.trim(),
      );
      const isVisible =
        element.checkVisibility() && !element.closest('.visually-hidden, .skip-link, option, script, style');
      if (!hasText || !isVisible) return [];
      const backgrounds = backgroundsOf(element);
      const [lighter = 0, darker = 0] = [
        luminance(blend(backgrounds)),
        luminance(blend([...backgrounds, getComputedStyle(element).color])),
      ].toSorted((one, other) => other - one);
      const ratio = (lighter + 0.05) / (darker + 0.05);
      return ratio < 4.5
        ? [`${ratio.toFixed(2)}: ${element.className} ${element.textContent?.slice(0, 60)}`]
        : [];
    });
  });
