import { defineBatch } from '../kit/batch.ts';

defineBatch('test/{architecture,unit}/**/*.test.ts');
